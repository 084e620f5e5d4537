<?php

declare(strict_types=1);

/*
 * Serves as one contestant of the HTTP benchmarks until a signal ends this process, which does nothing else:
 * http-contestant.php CONTESTANT WORK [options].
 */

use Spindle\Bench\Http\Contestant;
use Spindle\Bench\Http\Site;
use Spindle\Bench\Http\Work;
use Spindle\Bench\Support\Options;

require __DIR__ . '/bootstrap.php';

/** @var non-empty-list<string> $argv */
$contestant = Contestant::from($argv[1] ?? '');
$options = Options::parse(array_slice($argv, 3), Site::OPTIONS + ['autoload' => []]);
$contestant->find($options->all('autoload'));
$contestant->serve(Site::of(Work::from($argv[2] ?? ''), $options));
