<?php

declare(strict_types=1);

header('Content-Type: text/csv');
for ($piece = 0; $piece < 1_000; ++$piece) {
    echo 100_000_000 + $piece . ",name,2026\n";
}
