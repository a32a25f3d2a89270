"""An admitted connection: its frames, its requests, its client's authentication, and its throttling."""
