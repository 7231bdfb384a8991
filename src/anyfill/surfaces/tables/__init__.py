"""What stands behind ``TableModel`` and the commands for tables."""
