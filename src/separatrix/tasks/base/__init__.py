"""The interface of tasks, their sizes and their texts."""
