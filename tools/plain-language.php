<?php

declare(strict_types=1);

/*
 * Reports text that has to be read twice, by the rules of docs/contributing/plain-language.md:
 * plain-language.php [--counts] [PATH...]. Exit status 0 when there is none.
 */

use Spindle\Tests\Architecture\PlainLanguage;

require __DIR__ . '/../vendor/autoload.php';

/** @var non-empty-list<string> $argv */
$arguments = array_slice($argv, 1);
$countsOnly = in_array('--counts', $arguments, true);
$paths = array_values(array_diff($arguments, ['--counts']));
$language = new PlainLanguage(dirname(__DIR__));

$counts = [];
foreach ($language->files() as $file) {
    $isAsked = $paths === []
        || array_filter($paths, static fn(string $path): bool => str_starts_with($file, $path)) !== [];
    foreach ($isAsked ? $language->check($file) : [] as ['line' => $line, 'rule' => $rule, 'text' => $text]) {
        $kind = preg_match('~^(?:long line|begins)~', $rule, $match) === 1 ? $match[0] : 'word';
        $folder = str_ends_with($file, '.md') ? 'Markdown' : strtok($file, '/');
        $counts[$folder][$kind] = ($counts[$folder][$kind] ?? 0) + 1;
        if (!$countsOnly) {
            echo "{$file}:{$line}: {$rule}: {$text}\n";
        }
    }
}
foreach ($counts as $folder => $kinds) {
    ksort($kinds);
    printf(
        "%-9s %s\n",
        $folder,
        implode(
            ', ',
            array_map(static fn(string $kind, int $count): string => "{$kind} {$count}", array_keys($kinds), $kinds),
        ),
    );
}
$isShort = true;
if ($paths === []) {
    $shared = $language->sharedNames();
    foreach ($shared as $name => $files) {
        echo "several classes are called {$name}: ", implode(', ', $files), "\n";
    }
    ['lines' => $lines, 'comments' => $comments] = $language->commentLines('src');
    printf("comment lines in src: %.1f %%; short names used twice: %d\n", 100 * $comments / $lines, count($shared));
    $isShort = $shared === [];
}
exit($counts === [] && $isShort ? 0 : 1);
