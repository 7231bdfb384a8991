"""What the repository makes or counts by script."""
