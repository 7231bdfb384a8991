"""What every application shows itself with: options, output, progress, pages."""
