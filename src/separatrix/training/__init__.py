"""Training: what gradient descent finds, measured with seeds, budget, interval and chance."""
