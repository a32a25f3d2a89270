"""One room for each subject of Kafka: what its APIs answer, what its home decides, and its state."""
