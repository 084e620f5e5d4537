<?php

declare(strict_types=1);

/*
 * Calls a method of Alone in a project with its own autoloader: alone-process.php PROJECT METHOD ARGUMENT
 *
 * The argument and the result are JSON.
 */

use Spindle\Tests\Architecture\Alone;

/** @var non-empty-list<string> $argv */
[, $project, $method, $argument] = [...$argv, '', '', ''];
chdir($project);
require "{$project}/vendor/autoload.php";
require __DIR__ . '/Alone.php';

/** @var callable(mixed): mixed $call */
$call = [Alone::class, $method];
echo json_encode($call(json_decode($argument, true, flags: JSON_THROW_ON_ERROR)), JSON_THROW_ON_ERROR);
