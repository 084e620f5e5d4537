<?php

declare(strict_types=1);

/* A page that runs tasks, for any web server. */

use Spindle\Tests\Integration\Worker\Page;

require dirname(__DIR__, 3) . '/vendor/autoload.php';

header('Content-Type: application/json');
echo json_encode(Page::answer(), JSON_THROW_ON_ERROR);
