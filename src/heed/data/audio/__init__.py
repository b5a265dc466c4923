"""Recordings with their transcripts."""
