<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres\Types;

use Random\Engine\Mt19937;
use Random\Randomizer;
use Spindle\Postgres\Internal\Types\BuiltInTypes;
use Spindle\Postgres\Range;
use Spindle\Tests\Postgres\TypeCases;

/** Generates values of a type from a seed. */
final class RandomValues
{
    private readonly Randomizer $random;

    public function __construct(int $seed)
    {
        $this->random = new Randomizer(new Mt19937($seed));
    }

    /** @param int $oid OID of a built-in type */
    public function of(int $oid): mixed
    {
        return match (true) {
            isset(BuiltInTypes::ARRAYS[$oid]) => $this->array(BuiltInTypes::ARRAYS[$oid]),
            isset(BuiltInTypes::RANGES[$oid]) => $this->range(BuiltInTypes::RANGES[$oid][1]),
            isset(BuiltInTypes::MULTIRANGES[$oid]) => $this->multirange(BuiltInTypes::MULTIRANGES[$oid][1]),
            default => $this->scalar($oid),
        };
    }

    public function below(int $limit): int
    {
        return $this->random->getInt(0, $limit - 1);
    }

    /** Returns bytes, many of which have a meaning in some format. */
    public function bytes(int $longest): string
    {
        return match ($this->below(3)) {
            0 => $this->random->getBytes(max(1, $this->below($longest))),
            1 => $this->pick('{}[]()",\\:;=-+. 0123456789TPYMDHS' . "\0\xFF", $longest),
            default => $this->pick('{},"\\N', $longest),
        };
    }

    /** Returns UTF-8 without NUL, with many characters that have a meaning in some format. */
    public function text(): string
    {
        return implode(
            '',
            $this->times(
                fn(): string => [
                    'a',
                    'NULL',
                    '"',
                    '\\',
                    '{',
                    '}',
                    ',',
                    ' ',
                    "\n",
                    "\t",
                    '(',
                    ']',
                    ';',
                    '""',
                    '\\\\',
                    'ä',
                    "\u{1F600}",
                    '\\x',
                    '=',
                ][$this->below(19)],
            ),
        );
    }

    public function bool(): bool
    {
        return $this->below(2) === 1;
    }

    private function scalar(int $oid): mixed
    {
        return match ($oid) {
            16 => $this->bool(),
            17 => $this->bytes(20),
            20, 21, 23, 26 => $this->int(),
            700, 701 => $this->float(),
            114, 3802 => $this->times(fn(): mixed => $this->json(3)),
            1082 => $this->date(),
            1114 => $this->timestamp(),
            1184 => $this->timestamp()->setTimezone(new \DateTimeZone(\sprintf(
                '%s%02d:%02d',
                $this->bool() ? '+' : '-',
                $this->below(15),
                $this->below(60),
            ))),
            1186 => $this->interval(),
            default => $this->text(),
        };
    }

    private function int(): int
    {
        return $this->random->getInt(\PHP_INT_MIN, \PHP_INT_MAX) >> $this->below(64);
    }

    private function float(): float
    {
        $special = [0.0, -0.0, 1.0, \INF, -\INF, \NAN, \PHP_FLOAT_MAX, \PHP_FLOAT_MIN, 5e-324];
        if ($this->below(5) === 0) {
            return $special[$this->below(\count($special))];
        }
        /** @var array{1: float} $float */
        $float = unpack('E', $this->random->getBytes(8));

        return $float[1];
    }

    private function json(int $depth): mixed
    {
        return match ($this->below($depth > 0 ? 7 : 5)) {
            0 => null,
            1 => $this->bool(),
            2 => $this->int(),
            3 => is_finite($float = $this->float()) ? $float : 0.5,
            4 => $this->text(),
            5 => $this->times(fn(): mixed => $this->json($depth - 1)),
            default => array_combine(
                $keys = array_values(array_unique($this->times($this->text(...)))),
                array_map(fn(): mixed => $this->json($depth - 1), $keys),
            ),
        };
    }

    private function date(): \DateTimeImmutable|float
    {
        return $this->below(9) === 0
            ? ($this->bool() ? \INF : -\INF)
            : (new \DateTimeImmutable('2000-01-01 UTC'))->setDate(
                $this->year(),
                1 + $this->below(12),
                1 + $this->below(31),
            );
    }

    private function timestamp(): \DateTimeImmutable
    {
        return (new \DateTimeImmutable('2000-01-01 UTC'))
            ->setDate($this->year(), 1 + $this->below(12), 1 + $this->below(31))
            ->setTime(
                $this->below(24),
                $this->below(60),
                $this->below(60),
                $this->bool() ? 0 : $this->below(1_000_000),
            );
    }

    private function year(): int
    {
        return $this->bool() ? 1900 + $this->below(200) : $this->below(300_000) - 4713;
    }

    private function interval(): \DateInterval
    {
        $time = $this->bool() ? 1 : -1;

        return TypeCases::interval(
            $this->below(100) - 50,
            $this->below(23) - 11,
            $this->below(100) - 50,
            $time * $this->below(100),
            $time * $this->below(60),
            $time * $this->below(60),
            $this->bool() ? 0 : $time * $this->below(1_000_000),
        );
    }

    private function range(int $bound): Range
    {
        if ($this->below(8) === 0) {
            return Range::empty();
        }
        [$lower, $upper] = [
            $this->below(5) === 0 ? null : $this->of($bound),
            $this->below(5) === 0 ? null : $this->of($bound),
        ];

        return new Range($lower, $upper, $this->bool(), $this->bool());
    }

    /** @return list<Range> no empty ranges, because the server drops them */
    private function multirange(int $range): array
    {
        $bound = BuiltInTypes::RANGES[$range][1];

        return array_values(array_filter(
            $this->times(fn(): Range => $this->range($bound)),
            static fn(Range $range): bool => !$range->empty,
        ));
    }

    /** @return list<mixed> */
    private function array(int $element): array
    {
        $make = fn(): mixed => $this->below(6) === 0 ? null : $this->of($element);
        if (\in_array($element, [114, 3802], true) || isset(BuiltInTypes::MULTIRANGES[$element]) || $this->bool()) {
            return $this->times($make);
        }
        $columns = 1 + $this->below(3);

        return array_map(
            static fn(): array => array_map(static fn(): mixed => $make(), range(1, $columns)),
            range(1, 1 + $this->below(3)),
        );
    }

    /**
     * @template T
     *
     * @param \Closure(): T $make
     *
     * @return list<T>
     */
    private function times(\Closure $make): array
    {
        $values = [];
        for ($i = $this->below(6); $i > 0; --$i) {
            $values[] = $make();
        }

        return $values;
    }

    private function pick(string $characters, int $longest): string
    {
        $bytes = '';
        for ($i = 1 + $this->below($longest); $i > 0; --$i) {
            $bytes .= $characters[$this->below(\strlen($characters))];
        }

        return $bytes;
    }
}
