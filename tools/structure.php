<?php

declare(strict_types=1);

/*
 * Counts what makes the code of src hard to follow, by the limits of docs/contributing/structure.md:
 * structure.php [--list] [ROOT]. ROOT is another checkout. --list names each place.
 */

use Spindle\Tests\Architecture\Structure;

require __DIR__ . '/../vendor/autoload.php';

/** @var non-empty-list<string> $argv */
$arguments = array_slice($argv, 1);
$isList = in_array('--list', $arguments, true);
$root = array_values(array_diff($arguments, ['--list']))[0] ?? dirname(__DIR__);
$structure = Structure::of($root);

printf("%6d lines of code in src\n", array_sum($structure->codeLines));
$counts = [
    'classes that call getSuspension()' => [$structure->suspendingClasses, false],
    'classes of over ' . Structure::MAX_CLASS_LINES . ' lines' => [$structure->longClasses, false],
    'functions of over ' . Structure::MAX_FUNCTION_LINES . ' lines' => [$structure->longFunctions, false],
    'functions with a complexity of over ' . Structure::MAX_COMPLEXITY => [$structure->complexFunctions, false],
    'closures passed to constructors' => [$structure->closureArguments, true],
];
foreach ($counts as $title => [$found, $isSum]) {
    printf("%6d %s\n", $isSum ? array_sum($found) : count($found), $title);
    foreach ($isList ? $found : [] as $place => $count) {
        echo "         {$place}: {$count}\n";
    }
}
