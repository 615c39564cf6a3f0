"""Model families of Hugging Face configs, one file each."""
