"""Images: files, prepared arrays, augmentation and batches."""
