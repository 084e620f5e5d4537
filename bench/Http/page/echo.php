<?php

declare(strict_types=1);

header('Content-Type: application/octet-stream');
echo file_get_contents('php://input');
