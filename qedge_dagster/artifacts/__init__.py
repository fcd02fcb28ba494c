"""What each stage made of each document, as Parquet files beside the database."""
