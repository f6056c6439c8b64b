"""The contents of text files of many kinds."""

import json

TEXTS = {
    "program.py": """#!/usr/bin/env python3
import sys


def main() -> int:
    print(max(float(argument) ** 2 for argument in sys.argv[1:]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
""",
    "data.json": json.dumps(
        {"name": "example", "numbers": [1, 2, 3.5], "nested": {"yes": True, "none": None}}, indent=2
    ),
    "lines.jsonl": "".join(json.dumps({"id": i, "name": f"item {i}", "price": i * 1.5}) + "\n" for i in range(20)),
    "page.html": """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>An example</title><link rel="stylesheet" href="style.css"></head>
<body>
  <h1>Heading</h1>
  <p>A <a href="https://example.org/">link</a> and an <em>emphasis</em>.</p>
  <ul><li>one</li><li>two</li></ul>
</body>
</html>
""",
    "style.css": """body { margin: 0; font-family: sans-serif; color: #333; }
a:hover { text-decoration: underline; }
@media (max-width: 600px) {
  .menu { display: none; }
  .content > p { padding: 0.5rem 1em; background: rgba(0, 0, 0, 0.1); }
}
""",
    "script.js": """'use strict';
const fs = require('fs');

async function load(name) {
  const text = await fs.promises.readFile(name, 'utf8');
  return JSON.parse(text).map((item) => ({ ...item, loaded: true }));
}

document.addEventListener('click', (event) => {
  console.log(`clicked ${event.target.id}`);
});
module.exports = { load };
""",
    "README.md": """# An example

Some *emphasis*, some **strength**, a [link](https://example.org), and a list:

- one
- two
  1. nested

## Code

```python
print("hello")
```

| a | b |
|---|---|
| 1 | 2 |
""",
    "data.xml": """<?xml version="1.0" encoding="UTF-8"?>
<catalog xmlns="urn:example">
  <book id="1"><title>First</title><price currency="EUR">12.50</price></book>
  <book id="2"><title>Second</title><price currency="EUR">8.00</price></book>
</catalog>
""",
    "picture.svg": """<svg xmlns="http://www.w3.org/2000/svg" width="100" height="100" viewBox="0 0 100 100">
  <circle cx="50" cy="50" r="40" fill="red" stroke="black"/>
  <path d="M10 10 L90 90" stroke="blue"/>
</svg>
""",
    "table.csv": "name,age,city\n" + "".join(f"person{i},{20 + i},City {i % 4}\n" for i in range(30)),
    "table.tsv": "name\tage\tcity\n" + "".join(f"person{i}\t{20 + i}\tCity {i % 4}\n" for i in range(30)),
    "settings.yaml": """version: "3"
services:
  web:
    image: nginx:latest
    ports:
      - "80:80"
    environment:
      - DEBUG=true
  db:
    image: postgres
    volumes: [data:/var/lib/postgresql]
""",
    "settings.toml": """[project]
name = "example"
version = "0.1.0"
dependencies = ["numpy>=2", "trio"]

[tool.example]
strict = true
limits = { low = 1, high = 10 }
""",
    "settings.ini": """[server]
host = 127.0.0.1
port = 8080

; a comment
[logging]
level = debug
file = /var/log/example.log
""",
    "schema.sql": """CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, born DATE);
INSERT INTO users (id, name) VALUES (1, 'Ada'), (2, 'Grace');
SELECT u.name, COUNT(*) FROM users u LEFT JOIN orders o ON o.user_id = u.id GROUP BY u.name HAVING COUNT(*) > 1;
""",
    "build.sh": """#!/bin/bash
set -euo pipefail
for file in "$@"; do
    if [ -f "$file" ]; then
        echo "processing $file" | tee -a build.log
    fi
done
export PATH="$HOME/bin:$PATH"
""",
    "Dockerfile": """FROM python:3.12-slim
WORKDIR /app
COPY requirements.txt .
RUN pip install --no-cache-dir -r requirements.txt
COPY . .
EXPOSE 8000
CMD ["python", "-m", "app"]
""",
    "page.php": """<?php
declare(strict_types=1);

namespace App;

class User {
    public function __construct(private string $name) {}
    public function greet(): string { return "Hello, {$this->name}"; }
}

echo (new User($_GET['name'] ?? 'world'))->greet();
""",
    "program.lua": """local Account = {}
Account.__index = Account

function Account.new(balance)
  local self = setmetatable({}, Account)
  self.balance = balance or 0
  return self
end

for i = 1, 10 do
  print(string.format("%d %s", i, Account.new(i).balance))
end
""",
    "change.diff": """diff --git a/file.txt b/file.txt
index 83db48f..bf269f4 100644
--- a/file.txt
+++ b/file.txt
@@ -1,3 +1,3 @@
 first
-second
+changed
 third
""",
    "short.txt": "hi",
    "seven.bin": "seven\u00e9",
    "words.txt": "It was a quiet evening, and nobody in the village expected anything unusual to happen. " * 20,
    "padded.txt": " \n\t" * 400 + "short" + "\n" * 9000,
    "blank.txt": " \n\t" * 500,
    "empty": "",
    "data-behind-blanks.json": "\n" * 3000 + json.dumps({"a": list(range(600))}) + " " * 5000,
}
