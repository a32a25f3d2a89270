"""What happens on an admitted connection: frames, requests, who the client is, and how it is throttled."""
