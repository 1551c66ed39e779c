"""Who needs which layouts: backends, and what users want."""
