<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Spindle\Http\HttpServerStatistics;
use Spindle\Http\Internal\Admin\Source;

/** The processes that run the application, asked by way of the supervisor. One that does not answer is left out. */
final readonly class ServersElsewhere implements Source
{
    public function __construct(private Link $link) {}

    public function statistics(): array
    {
        return array_map(HttpServerStatistics::fromJson(...), $this->ask(Worker::STATISTICS));
    }

    public function checks(): array
    {
        $reasons = [];
        foreach ($this->ask(Worker::CHECKS) as $answer) {
            /** @var array<string, string|null> $checks */
            $checks = json_decode($answer, true, flags: \JSON_THROW_ON_ERROR);
            foreach ($checks as $name => $reason) {
                $reasons[$name] ??= $reason;
            }
        }

        return $reasons;
    }

    /** @return list<string> */
    private function ask(string $question): array
    {
        return array_values(array_filter(array_column($this->link->survey($question), 'answer'), \is_string(...)));
    }
}
