"""Each folder and module here adds to the definitions by being here."""
