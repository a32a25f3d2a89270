"""Links between processes: epoll callbacks, frames, messages, calls."""
