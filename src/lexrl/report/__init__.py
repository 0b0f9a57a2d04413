"""Pictures from plain arrays; nothing here knows how the numbers came about."""
