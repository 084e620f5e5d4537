<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Message;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\Message\HandlerFailure;
use Spindle\Tests\Http\Records;

final class HandlerFailureTest extends TestCase
{
    /** @return iterable<string, array{\Throwable, int, list<string>}> */
    public static function failures(): iterable
    {
        $cause = new \RuntimeException('The disk is full');
        yield 'any' => [$cause, 500, ['The handler of {method} {target} failed: The disk is full']];
        yield 'with a status and a cause' => [
            new HttpException(507, 'Not kept', previous: $cause),
            507,
            ['The handler of {method} {target} failed: The disk is full'],
        ];
        yield 'with a status alone' => [new HttpException(503, 'Later'), 503, []];
        yield 'that the client is to blame for' => [new HttpException(400, 'No', previous: $cause), 400, []];
    }

    /** @param list<string> $messages */
    #[DataProvider('failures')]
    public function testTheLogHasDetailsThatTheClientDoesNotGet(\Throwable $failure, int $status, array $messages): void
    {
        $log = new Records();
        $answer = HandlerFailure::answer($failure, [], $log);

        self::assertSame([$status, $messages], [$answer->getStatusCode(), $log->messages()]);
        self::assertStringNotContainsString('disk', (string) $answer->getBody());
    }

    public function testTheContextHasTheFieldsOfTheRequestAndTheException(): void
    {
        $log = new Records();
        $failure = new \RuntimeException('no');
        HandlerFailure::answer($failure, ['method' => 'GET', 'request_id' => 'id7'], $log);

        self::assertSame(
            ['method' => 'GET', 'request_id' => 'id7', 'exception' => $failure],
            $log->all[0]['context'],
        );
    }

    public function testAnExceptionWhoseMessageCannotBeReadIsLogged(): void
    {
        $failure = new \RuntimeException();
        $message = new class {
            public function __toString(): string
            {
                throw new \LogicException('No text');
            }
        };
        (new \ReflectionProperty(\Exception::class, 'message'))->setValue($failure, $message);
        $log = new Records();
        $answer = HandlerFailure::answer($failure, [], $log);

        self::assertSame(500, $answer->getStatusCode());
        self::assertSame(
            ['The handler of {method} {target} failed: (the message cannot be converted to a string)'],
            $log->messages(),
        );
    }

    #[TestWith([400, 'warning'])]
    #[TestWith([503, 'error'])]
    public function testACutOffResponseIsLogged(int $status, string $level): void
    {
        $log = new Records();
        HandlerFailure::answer(new HttpException($status, 'Why'), [], $log, responseStarted: true);

        self::assertSame(
            [[$level, 'The handler of {method} {target} failed: Why']],
            array_map(static fn(array $record): array => [$record['level'], $record['message']], $log->all),
        );
    }
}
