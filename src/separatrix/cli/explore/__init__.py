"""The page: stacks put together by hand in a browser, and what follows from them."""
