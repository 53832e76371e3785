"""Facts about tile IR; nothing here changes it."""
