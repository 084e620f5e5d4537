<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Aircraft;

use Spindle\Tests\Aircraft\RunsAircraft;
use Spindle\Tests\TidyTestCase;
use Symfony\Component\Process\Process;

final class ConsoleTest extends TidyTestCase
{
    use RunsAircraft;

    public function testWhatWasDoneIsNotDoneAgain(): void
    {
        self::assertSame([0, "nothing to migrate\n", ''], $this->console('migrate'));
        self::assertSame([0, "3 aircraft added\n", ''], $this->console('seed', '3'));
        self::assertSame(
            [1, '', "error: Line 2: number already exists, or is twice in the file: S-000000; nothing was added\n"],
            $this->console('seed', '3'),
        );
    }

    public function testWhatItDoesNotKnowItTells(): void
    {
        foreach ([[], ['sed'], ['seed', 'ten'], ['seed', '-5'], ['seed', '0']] as $arguments) {
            [$status, $output, $errors] = $this->console(...$arguments);
            self::assertSame([64, ''], [$status, $output]);
            self::assertStringStartsWith('usage: php console.php migrate', $errors);
        }
    }

    public function testWithoutADatabaseItSaysSoInALine(): void
    {
        [$status, $output, $errors] = $this->consoleOn('host=127.0.0.1 port=1 user=app password=secret', 'migrate');

        self::assertSame([1, ''], [$status, $output]);
        self::assertMatchesRegularExpression('/^error: .*refused.*\n$/D', $errors);
        self::assertStringNotContainsString('secret', $errors);
    }

    /** @return array{int|null, string, string} status, output, errors */
    private function console(string ...$arguments): array
    {
        return $this->consoleOn($this->dsn(), ...$arguments);
    }

    /** @return array{int|null, string, string} */
    private function consoleOn(string $dsn, string ...$arguments): array
    {
        $process = new Process(
            [\PHP_BINARY, \dirname(__DIR__, 3) . '/examples/aircraft/console.php', ...array_values($arguments)],
            null,
            ['DATABASE_URL' => $dsn],
            null,
            20,
        );
        $process->run();

        return [$process->getExitCode(), $process->getOutput(), $process->getErrorOutput()];
    }
}
