"""Bridges to other libraries, each in a room of its own and with an extra of its own; nothing else imports them."""
