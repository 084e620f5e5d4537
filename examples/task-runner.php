<?php

declare(strict_types=1);

// Code written for TaskRunner.php, unchanged except for the require line.

use TaskRunner\TaskRunner;

require __DIR__ . '/autoload.php';

$taskRunner = new TaskRunner(8);
for ($i = 0; $i < 100; ++$i) {
    $taskRunner->add("task_{$i}", "echo {$i}");
}

$sum = 0;
$taskRunner->runAndWait(function (array $result, int $completed, int $total) use (&$sum): void {
    $sum += (int) $result['stdout'];
    if ($completed % 50 === 0) {
        echo "Progress: {$completed}/{$total}\n";
    }
});
echo "Sum: {$sum}\n";
