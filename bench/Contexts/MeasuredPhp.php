<?php

declare(strict_types=1);

namespace Spindle\Bench\Contexts;

use Spindle\Bench\Support\Program;
use Spindle\Bench\Support\Series;

/** A PHP binary to measure. */
final readonly class MeasuredPhp
{
    /** @param array<string, string|null> $missing why a way is not available, by way; null when it is */
    private function __construct(
        public string $path,
        public string $name,
        public array $missing,
    ) {}

    /** @return self|string a string says why this PHP can't be measured */
    public static function at(string $path): self|string
    {
        if (!is_file($path) || !is_executable($path)) {
            return 'there is no such program';
        }
        try {
            /** @var array{version: string, kind: string, missing: array<string, string|null>} $result */
            $result = self::run($path, 'ways');
        } catch (\RuntimeException $failure) {
            return $failure->getMessage();
        }

        return new self($path, "PHP {$result['version']} {$result['kind']}", $result['missing']);
    }

    public function creation(Way $way, int $max): Series
    {
        return new Series($way->label(), function (Series $series) use ($way, $max): float {
            $result = self::run($this->path, 'create', $way->value, (string) $max);
            $series->record($result);

            return \is_float($result['seconds'] ?? null)
                ? $max / $result['seconds']
                : throw new \RuntimeException('the program printed no time');
        }, "{$this->name}, {$this->path}");
    }

    /** @param \Closure(string): bool $isRight whether the work had the right result */
    public function work(int $iterations, \Closure $isRight): Series
    {
        return new Series("{$this->name}, {$this->path}", function (Series $series) use ($iterations, $isRight): float {
            $result = self::run($this->path, 'work', (string) $iterations);
            $series->record($result);
            if (!\is_string($result['result'] ?? null) || !$isRight($result['result'])) {
                $series->note('not all results are right: another result');
            }

            return \is_float($result['seconds'] ?? null)
                ? $result['seconds']
                : throw new \RuntimeException('the program printed no time');
        });
    }

    /** @return array<string, mixed> */
    private static function run(string $path, string ...$arguments): array
    {
        [$status, $output] = Program::run(
            [$path, ...Program::PHP_OPTIONS, \dirname(__DIR__) . '/context.php', ...array_values($arguments)],
        );
        $result = json_decode($output, true);
        if ($status !== 0 || !\is_array($result)) {
            throw new \RuntimeException("the program ended with status {$status}");
        }
        /** @var array<string, mixed> $result */
        return $result;
    }
}
