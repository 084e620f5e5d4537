<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use Spindle\Bench\Support\Options;

/** One measurement of one contestant. */
final readonly class Job
{
    private const OPTIONS = ['variant' => 'single', 'n' => '1', 'connections' => '1', 'fibers' => '1', 'bytes' => '1'];

    public function __construct(
        public Measurement $what,
        public Variant $variant,
        public Contestant $contestant,
        public int $count,
        public Shape $shape,
        public int $bytes,
    ) {}

    /** @param list<string> $arguments from {@see arguments()} */
    public static function of(array $arguments): self
    {
        [$what, $contestant] = $arguments;
        $options = Options::parse(\array_slice($arguments, 2), self::OPTIONS);

        return new self(
            Measurement::from($what),
            Variant::from($options->text('variant')),
            Contestant::from($contestant),
            $options->int('n'),
            new Shape($options->int('connections'), $options->int('fibers')),
            $options->int('bytes'),
        );
    }

    /** @return list<string> arguments of postgres-contestant.php */
    public function arguments(): array
    {
        return [
            $this->what->value,
            $this->contestant->value,
            "--variant={$this->variant->value}",
            "-n{$this->count}",
            "--connections={$this->shape->connections}",
            "--fibers={$this->shape->fibers}",
            "--bytes={$this->bytes}",
        ];
    }
}
