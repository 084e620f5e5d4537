<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\Protocol\Conversation;
use Spindle\Postgres\Internal\Protocol\Exchange;
use Spindle\Postgres\Internal\Protocol\PreparedStatement;
use Spindle\Postgres\Internal\Protocol\PreparedStatements;
use Spindle\Postgres\Internal\Protocol\StatementFailures;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Internal\StatementLog;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\InvalidParameterException;
use Spindle\Postgres\MultipleStatementsException;
use Spindle\Postgres\QueryException;

final class StatementFailuresTest extends TestCase
{
    private const OUT_OF_DATE = ['C' => '0A000', 'R' => 'RevalidateCachedQuery', 'M' => 'cached plan must not change'];
    private const UNKNOWN_NAME = ['C' => '26000', 'M' => 'prepared statement "a" does not exist'];
    private const CANCELLED = ['C' => '57014', 'M' => 'canceling statement due to user request'];

    private PreparedStatements $statements;

    private Conversation $conversation;

    protected function setUp(): void
    {
        $this->conversation = new Conversation();
        $this->statements = new PreparedStatements(10);
        foreach (['SELECT 1', 'SELECT 2'] as $sql) {
            $this->statements->add($sql, new PreparedStatement('name', [], null, new Types(), false, false));
        }
    }

    public function testAStatementThatIsOutOfDateIsForgottenAndSentAgainThreeTimes(): void
    {
        foreach ([1, 2, 3] as $attempt) {
            self::assertNull($this->failure('SELECT 1', self::exchange(self::OUT_OF_DATE), $attempt));
        }

        self::assertNull($this->statements->find('SELECT 1'));
        self::assertNotNull($this->statements->find('SELECT 2'));
        self::assertInstanceOf(QueryException::class, $this->failure('SELECT 1', self::exchange(self::OUT_OF_DATE), 4));
    }

    #[TestWith(["SELECT 1; SELECT 'secret'", "11: SELECT '******'."])]
    #[TestWith(["SELECT 'a\\'; secret'; SELECT 2", '14: ***.'])]
    public function testTheSecondStatementIsShownWithoutItsStrings(string $sql, string $shown): void
    {
        $failure = $this->failure($sql, self::exchange(['C' => '42601', 'R' => 'exec_parse_message']));

        self::assertInstanceOf(MultipleStatementsException::class, $failure);
        self::assertStringContainsString("at character {$shown}", $failure->getMessage());
    }

    public function testTheSecondStatementIsFoundWithTheSettingOfBackslashesInStrings(): void
    {
        $this->conversation->escapesWithBackslash = true;
        $refusal = self::exchange(['C' => '42601', 'R' => 'exec_parse_message']);
        $failure = $this->failure("SELECT 'a\\''; SELECT 'b'", $refusal);

        self::assertInstanceOf(MultipleStatementsException::class, $failure);
        self::assertStringContainsString('at character 15: ', $failure->getMessage());
    }

    public function testNothingIsSentAgainInATransaction(): void
    {
        $exchange = self::exchange(self::OUT_OF_DATE);
        $exchange->status = 'E';

        self::assertInstanceOf(QueryException::class, $this->failure('SELECT 1', $exchange));
        self::assertNull($this->statements->find('SELECT 1'), 'the next transaction prepares it again');
    }

    public function testAnErrorAfterBindIsOneOfTheExecution(): void
    {
        $exchange = self::exchange(self::OUT_OF_DATE);
        $exchange->isBound = true;

        self::assertInstanceOf(QueryException::class, $this->failure('SELECT 1', $exchange));
        self::assertNotNull($this->statements->find('SELECT 1'));
    }

    public function testAnUnknownNameForgetsAllStatementsAndTheSecondTimeDisablesTheCache(): void
    {
        self::assertNull($this->failure('SELECT 1', self::exchange(self::UNKNOWN_NAME)));
        self::assertNull($this->statements->find('SELECT 2'));
        self::assertNotSame('', $this->statements->newName('SELECT 1'));

        self::assertNull($this->failure('SELECT 1', self::exchange(self::UNKNOWN_NAME), 2));
        self::assertSame('', $this->statements->newName('SELECT 1'));
    }

    #[TestWith(['SELECT 1', true])]
    #[TestWith(['INSERT INTO t VALUES (1)', true])]
    #[TestWith(['VACUUM', false])]
    #[TestWith(['COMMIT', false])]
    public function testAStatementThatWasStoppedByMistakeIsSentAgainIfThatIsSafe(string $sql, bool $again): void
    {
        $exchange = self::exchange(self::CANCELLED);
        $exchange->isStoppedByMistake = true;

        self::assertSame($again, $this->failure($sql, $exchange, 100) === null);
    }

    public function testAnotherErrorIsThrownWithoutTheValues(): void
    {
        $exchange = self::exchange(['C' => '22P02', 'M' => 'invalid input syntax for type integer: "secret"']);
        $exchange->parameterTypes = [25];
        $failure = $this->failure('SELECT $1::int', $exchange, 1, ['secret']);

        self::assertInstanceOf(QueryException::class, $failure);
        self::assertStringNotContainsString('secret', $failure->getMessage());
    }

    public function testANumberOfParametersThatDoesNotMatchIsTheReason(): void
    {
        $exchange = self::exchange(['C' => '08P01', 'M' => 'bind message supplies 0 parameters']);
        $exchange->parameterTypes = [25];

        self::assertInstanceOf(InvalidParameterException::class, $this->failure('SELECT $1', $exchange));
    }

    public function testSeveralStatementsInOneQueryHaveTheirOwnException(): void
    {
        $exchange = self::exchange(['C' => '42601', 'R' => 'exec_parse_message', 'M' => 'multiple commands']);

        self::assertInstanceOf(MultipleStatementsException::class, $this->failure('SELECT 1; SELECT 2', $exchange));
    }

    #[TestWith(['G', 'A COPY … FROM STDIN needs copyFrom()'])]
    #[TestWith(['H', 'A COPY … TO STDOUT needs copyTo()'])]
    public function testACopyNeedsAnotherMethod(string $response, string $message): void
    {
        $exchange = self::exchange(null);
        $exchange->copyResponse = $response;
        $failure = $this->failure('EXECUTE copies', $exchange);

        self::assertInstanceOf(\LogicException::class, $failure);
        self::assertSame($message, $failure->getMessage());
    }

    /** @param array<string, string>|null $fields of the error; null for none */
    private static function exchange(?array $fields): Exchange
    {
        $exchange = new Exchange();
        $exchange->status = 'I';
        $exchange->serverError = $fields === null ? null : new ServerError($fields);

        return $exchange;
    }

    /** @param list<mixed> $parameters */
    private function failure(string $sql, Exchange $exchange, int $attempt = 1, array $parameters = []): ?\Throwable
    {
        $failures = new StatementFailures(
            $this->statements,
            new Types(),
            new StatementLog(null, 1, 1),
            $this->conversation,
        );
        try {
            $failures->throwUnlessRetryable($sql, [], $parameters, $exchange, $attempt);
        } catch (\Throwable $failure) {
            return $failure;
        }

        return null;
    }
}
