<?php

declare(strict_types=1);

namespace Spindle\Tests\Runner;

/** A patch that breaks one promise of the code, and the tests that must then fail. */
final readonly class Mutation
{
    private const FOLDER = 'tests/mutations';

    /**
     * @param string       $breaks the promise that the patch breaks
     * @param list<string> $tests  test files
     */
    private function __construct(
        public string $name,
        public string $breaks,
        public array $tests,
    ) {}

    /** @return array<string, self> all mutations by name */
    public static function all(): array
    {
        $all = [];
        foreach ((array) glob(self::FOLDER . '/*.patch') as $file) {
            $name = basename((string) $file, '.patch');
            $all[$name] = self::read($name);
        }

        return $all;
    }

    public function patch(): string
    {
        return self::FOLDER . "/{$this->name}.patch";
    }

    /** Returns whether the code still has the lines that the patch changes. */
    public function applies(): bool
    {
        $diff = explode("\n+++ b/", (string) file_get_contents($this->patch()), 2)[1] ?? '';
        [$file, $hunks] = [...explode("\n", $diff, 2), ''];
        $code = (string) @file_get_contents($file);
        $hunks = \array_slice(explode("\n@@ ", "\n{$hunks}"), 1);
        foreach ($hunks as $hunk) {
            $lines = [];
            foreach (\array_slice(explode("\n", $hunk), 1) as $line) {
                if (str_starts_with($line, ' ') || str_starts_with($line, '-')) {
                    $lines[] = substr($line, 1);
                }
            }
            if (!str_contains($code, implode("\n", $lines))) {
                return false;
            }
        }

        return $hunks !== [];
    }

    private static function read(string $name): self
    {
        $head = explode("\ndiff ", (string) file_get_contents(self::FOLDER . "/{$name}.patch"))[0];
        preg_match_all('/^(Breaks|Tests): (.+)$/m', $head, $lines);
        $values = array_combine($lines[1], $lines[2]);

        return new self(
            $name,
            $values['Breaks'] ?? '',
            isset($values['Tests']) ? explode(' ', $values['Tests']) : [],
        );
    }
}
