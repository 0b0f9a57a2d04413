"""Reports from what runs and experiments left on disk; nothing here knows how the numbers were computed."""
