"""What is deployed: image, compose stack, chart, local cluster."""
