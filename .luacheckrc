std = "ngx_lua"
max_line_length = 80
exclude_files = { "**/testdata/**" }
