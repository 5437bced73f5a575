"""The page: one offline file that shows the map, what it means, and whether to believe it."""
