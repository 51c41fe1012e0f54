"""From recorded nodes to values: handles on nodes, evaluation of what is pending, values as backends hold them."""
