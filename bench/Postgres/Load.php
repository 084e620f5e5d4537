<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

/** Statements that are sent in sequence, repeatedly, each time for a random row. */
final readonly class Load
{
    private const QUERIES_OF_A_UNIT = 20;

    /**
     * @param non-empty-list<Step> $steps
     * @param string|null          $afterwards query that returns whether all $1 runs were done; null for reads
     */
    private function __construct(
        public array $steps,
        public bool $isTransaction = false,
        private ?string $afterwards = null,
    ) {}

    public static function of(Measurement $what, Variant $variant, string $schema): self
    {
        return match ($what) {
            Measurement::Select, Measurement::Cells => new self(
                [Step::query("SELECT name FROM {$schema}.items WHERE id = \$1")],
            ),
            Measurement::Unit => new self(array_map(
                static fn(int $number): Step
                    => Step::query("SELECT name, {$number} AS query FROM {$schema}.items WHERE id = \$1"),
                range(1, self::QUERIES_OF_A_UNIT),
            )),
            Measurement::Sleep => new self(
                [Step::query("SELECT name FROM {$schema}.items WHERE id = \$1 AND pg_sleep(1) IS NOT NULL")],
            ),
            Measurement::Update => $variant === Variant::Transaction
                ? self::transaction($schema)
                : self::update($schema),
            default => throw new \LogicException("{$what->value} has no repeated load"),
        };
    }

    /**
     * @param \Closure(string, int): mixed $value returns the value of a query with one parameter
     * @param int                          $count number of runs
     */
    public function isDone(\Closure $value, int $count): bool
    {
        return $this->afterwards === null || $value($this->afterwards, $count) === true;
    }

    private static function update(string $schema): self
    {
        return new self(
            [Step::write("UPDATE {$schema}.counters SET counter = counter + 1 WHERE id = \$1")],
            afterwards: "SELECT sum(counter) = \$1::int8 FROM {$schema}.counters",
        );
    }

    private static function transaction(string $schema): self
    {
        return new self(
            [
                Step::query("SELECT name FROM {$schema}.counters WHERE id = \$1 FOR UPDATE"),
                Step::write("UPDATE {$schema}.counters SET counter = counter + 1 WHERE id = \$1"),
                Step::write("INSERT INTO {$schema}.log (id) VALUES (\$1)"),
            ],
            true,
            "SELECT sum(counter) = \$1::int8 AND (SELECT count(*) FROM {$schema}.log) = \$1::int8"
                . " FROM {$schema}.counters",
        );
    }
}
