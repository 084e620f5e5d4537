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
            /** @var array{version: string, kind: string, missing: array<string, string|null>} $told */
            $told = self::ask($path, 'ways');
        } catch (\RuntimeException $failure) {
            return $failure->getMessage();
        }

        return new self($path, "PHP {$told['version']} {$told['kind']}", $told['missing']);
    }

    public function creation(Way $way, int $max): Series
    {
        return new Series($way->label(), function (Series $series) use ($way, $max): float {
            $told = self::ask($this->path, 'create', $way->value, (string) $max);
            $series->record($told);

            return \is_float($told['seconds'] ?? null)
                ? $max / $told['seconds']
                : throw new \RuntimeException('it told no time');
        }, "{$this->name}, {$this->path}");
    }

    /** @param \Closure(string): bool $isRight whether the work had the right result */
    public function work(int $iterations, \Closure $isRight): Series
    {
        return new Series("{$this->name}, {$this->path}", function (Series $series) use ($iterations, $isRight): float {
            $told = self::ask($this->path, 'work', (string) $iterations);
            $series->record($told);
            if (!\is_string($told['result'] ?? null) || !$isRight($told['result'])) {
                $series->note('not all right: another result');
            }

            return \is_float($told['seconds'] ?? null)
                ? $told['seconds']
                : throw new \RuntimeException('it told no time');
        });
    }

    /** @return array<string, mixed> */
    private static function ask(string $path, string ...$arguments): array
    {
        [$status, $output] = Program::run(
            [$path, ...Program::PHP_OPTIONS, \dirname(__DIR__) . '/context.php', ...array_values($arguments)],
        );
        $told = json_decode($output, true);
        if ($status !== 0 || !\is_array($told)) {
            throw new \RuntimeException("it ended with {$status}");
        }
        /** @var array<string, mixed> $told */
        return $told;
    }
}
