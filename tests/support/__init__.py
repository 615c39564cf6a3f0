"""What tests share: commands of documents and names in them."""
