"""Bulk processing of files of any length: in chunks with overlapping stages, in constant memory, and resumable."""
