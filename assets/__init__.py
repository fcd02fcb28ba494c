"""This repository's code location: the sample documents, kept searchable. Written as a user of the library would."""
