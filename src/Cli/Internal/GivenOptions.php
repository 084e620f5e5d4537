<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Symfony\Component\Console\Input\InputInterface;

final class GivenOptions
{
    public function __construct(private readonly InputInterface $input) {}

    public function flag(string $name): bool
    {
        return $this->input->getOption($name) === true;
    }

    public function isGiven(string $name): bool
    {
        return !\in_array($this->input->getOption($name), [false, null, []], true);
    }

    /** Returns the value; null if the option is not given. Unlike {@see text()}, accepts an empty value. */
    public function rawText(string $name): ?string
    {
        $value = $this->input->getOption($name);

        return \is_string($value) ? $value : null;
    }

    /** @throws UsageException when the value is empty */
    public function text(string $name): ?string
    {
        $value = $this->input->getOption($name);
        if ($value === '') {
            throw new UsageException("option --{$name}: the value is empty; give a value");
        }

        return \is_string($value) ? $value : null;
    }

    /** @return list<string> the values of an option that can be given several times */
    public function texts(string $name): array
    {
        $values = (array) $this->input->getOption($name);
        if (\in_array('', $values, true)) {
            throw new UsageException("option --{$name}: the value is empty; give a value");
        }

        return array_values(array_filter($values, \is_string(...)));
    }

    /**
     * @return ($min is positive-int ? positive-int|null : int|null)
     *
     * @throws UsageException when the value is not one to nine digits, or out of range; $allowed is for the message
     */
    public function number(string $name, string $allowed, int $min = 0, int $max = \PHP_INT_MAX): ?int
    {
        $value = $this->text($name);
        if ($value === null) {
            return null;
        }
        $isNumber = preg_match('/^\d{1,9}$/D', $value) === 1;

        return $isNumber && (int) $value >= $min && (int) $value <= $max
            ? (int) $value
            : throw UsageException::option("--{$name}", $isNumber ? (string) (int) $value : $value, $allowed);
    }

    /** @throws UsageException when the value is not a duration */
    public function duration(string $name): ?float
    {
        $value = $this->text($name);

        return $value === null
            ? null
            : Duration::parse($value) ?? throw UsageException::option("--{$name}", $value, Duration::FORM);
    }

    /** @throws UsageException when --log-format is neither text nor json */
    public function logsJson(): bool
    {
        $format = $this->text('log-format') ?? 'text';

        return match ($format) {
            'text' => false,
            'json' => true,
            default => throw UsageException::option('--log-format', $format, 'text or json'),
        };
    }

    /** @throws UsageException when both flags are given; the message ends with $reason */
    public function rejectTogether(string $name, string $other, string $reason): void
    {
        if ($this->flag($name) && $this->flag($other)) {
            throw new UsageException("option --{$other}: can't be combined with --{$name}, {$reason}");
        }
    }
}
