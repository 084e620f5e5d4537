<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres\Connect;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\Connect\AttemptFailedException;
use Spindle\Postgres\Internal\Connect\SessionSetup;
use Spindle\Postgres\Internal\Connect\SimpleQueries;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\TargetSessionAttrs;
use Spindle\Tests\Postgres\Message;

final class SessionSetupTest extends TestCase
{
    private const NEW = [
        'server_version' => '15.2 (Debian)',
        'in_hot_standby' => 'off',
        'default_transaction_read_only' => 'off',
    ];

    private const OLD = ['server_version' => '13.4'];

    public function testANewServerChecksWhetherItsClientIsConnected(): void
    {
        $setup = new SessionSetup(new PostgresOptions(user: 'u'), TargetSessionAttrs::ReadWrite, self::NEW, 4711);

        self::assertCount(1, $setup->statements);
        self::assertSame(
            "select pg_catalog.pg_backend_pid() = 4711, pg_catalog.date_part('epoch', "
                . 'pg_catalog.pg_postmaster_start_time()), case when pg_catalog.pg_backend_pid() = 4711 '
                . "and pg_catalog.current_setting('client_connection_check_interval', "
                . "true) = '0' then pg_catalog.set_config(E'client_connection_check_interval', E'2000', false) end",
            $setup->statements[0],
        );
    }

    public function testAnOldServerNeedsNoStatementByDefault(): void
    {
        self::assertSame(
            [],
            (new SessionSetup(new PostgresOptions(user: 'u'), TargetSessionAttrs::Any, self::OLD, 1))->statements,
        );
    }

    public function testSettingsAreQuoted(): void
    {
        $options = new PostgresOptions(
            user: 'u',
            statementTimeout: 0.0001,
            settings: ['search_path' => "a'b\\", 'client_connection_check_interval' => '5s'],
        );

        self::assertSame(
            [
                "select pg_catalog.pg_backend_pid() = 1, pg_catalog.date_part('epoch', "
                    . 'pg_catalog.pg_postmaster_start_time())',
                "select pg_catalog.set_config(E'search_path', E'a''b\\\\', false), "
                    . "pg_catalog.set_config(E'client_connection_check_interval', E'5s', false), "
                    . "pg_catalog.set_config(E'statement_timeout', E'1', false)",
            ],
            (new SessionSetup($options, TargetSessionAttrs::Any, self::NEW, 1))->statements,
        );
    }

    public function testAServerBeforeVersion12IsConfiguredForExactFloats(): void
    {
        $statements = (new SessionSetup(
            new PostgresOptions(user: 'u'),
            TargetSessionAttrs::Any,
            ['server_version' => '11.2'],
            1,
        ))->statements;

        self::assertSame(["select pg_catalog.set_config(E'extra_float_digits', E'3', false)"], $statements);
    }

    /** @return iterable<string, array{TargetSessionAttrs, string, string, bool}> */
    public static function roles(): iterable
    {
        foreach (TargetSessionAttrs::cases() as $target) {
            foreach ([
                'a primary' => ['off', 'off'],
                'a primary that is read-only' => ['off', 'on'],
                'a standby' => ['on', 'on'],
            ] as $what => [$standby, $readOnly]) {
                $suits = match ($target) {
                    TargetSessionAttrs::Any, TargetSessionAttrs::PreferStandby => true,
                    TargetSessionAttrs::ReadWrite => $what === 'a primary',
                    TargetSessionAttrs::ReadOnly => $what !== 'a primary',
                    TargetSessionAttrs::Primary => $what !== 'a standby',
                    TargetSessionAttrs::Standby => $what === 'a standby',
                };
                yield "{$what} for {$target->value}" => [$target, $standby, $readOnly, $suits];
            }
        }
    }

    #[DataProvider('roles')]
    public function testTheKindOfSessionIsChecked(
        TargetSessionAttrs $target,
        string $standby,
        string $readOnly,
        bool $suits,
    ): void {
        $options = new PostgresOptions(user: 'u');
        $new = new SessionSetup(
            $options,
            $target,
            ['server_version' => '15', 'in_hot_standby' => $standby, 'default_transaction_read_only' => $readOnly],
            1,
        );
        $old = new SessionSetup($options, $target, self::OLD, 1);
        $answers = new SimpleQueries($old->statements, '');
        $answers->receive(
            $old->statements === []
                ? ''
                : Message::rowDescription(['a' => 16, 'b' => 25])
                . Message::dataRow($standby === 'on' ? 't' : 'f', $readOnly)
                . Message::commandComplete('SELECT 1')
                . Message::readyForQuery(),
        );

        self::assertSame([$suits, $suits], [self::check($new, new SimpleQueries([], '')), self::check($old, $answers)]);
    }

    public function testARefusedSettingIsReportedButNotTheCheckInterval(): void
    {
        $options = new PostgresOptions(user: 'u', settings: ['nonsense' => '1']);
        $setup = new SessionSetup($options, TargetSessionAttrs::Any, self::NEW, 1);
        $answers = new SimpleQueries($setup->statements, '');
        $error = Message::errorResponse('42704', 'unrecognized configuration parameter');
        $answers->receive($error . Message::readyForQuery() . $error . Message::readyForQuery() . 'rest');

        self::assertSame('rest', $answers->buffer->rest);
        $this->expectExceptionMessage('unrecognized configuration parameter (42704)');
        $setup->check($answers);
    }

    public function testChangesOfServerParametersAreNoticed(): void
    {
        $queries = new SimpleQueries(['select 1', 'select 2'], Message::parameterStatus('a', 'old'));
        foreach (str_split(
            Message::dataRow('x', null, '')
                . Message::readyForQuery()
                . Message::parameterStatus('a', 'new')
                . Message::noticeResponse('00000', '')
                . Message::dataRow()
                . Message::readyForQuery(),
        ) as $byte) {
            self::assertFalse($queries->isDone());
            $queries->receive($byte);
        }

        self::assertTrue($queries->isDone());
        self::assertSame(
            [['a' => 'new'], [['x', null, '']], [[]], null],
            [$queries->parameters, $queries->rows(0), $queries->rows(1), $queries->error(0)],
        );
    }

    /** @return iterable<string, array{string, string}> */
    public static function nonsense(): iterable
    {
        yield 'a value beyond its row' => [Message::of('D', "\0\1\0\0\0\x09x"), 'the length of a row differs'];
        yield 'half a length' => [Message::of('D', "\0\1\0\0"), 'ended before a number'];
        yield 'a copy' => [Message::copyInResponse(1), "type 'G'"];
        yield 'a login' => [Message::authenticationOk(), "type 'R'"];
    }

    #[DataProvider('nonsense')]
    public function testViolationsOfTheProtocolAreReported(string $bytes, string $message): void
    {
        $this->expectException(ProtocolException::class);
        $this->expectExceptionMessage($message);
        (new SimpleQueries(['select 1'], ''))->receive($bytes);
    }

    public function testTheBytesOfTheAnswersAreLimited(): void
    {
        $queries = new SimpleQueries(['select 1'], '');
        $this->expectException(ProtocolException::class);
        $this->expectExceptionMessage('sent too many bytes');
        for ($i = 0; $i < 1_000; ++$i) {
            $queries->receive(Message::dataRow(str_repeat('x', 1_000)));
        }
    }

    public function testTheErrorOfAServerThatEndsTheSessionIsReported(): void
    {
        $this->expectException(AttemptFailedException::class);
        $this->expectExceptionMessage('terminating connection (57P01)');
        (new SimpleQueries(['select 1'], ''))->receive(Message::errorResponse(
            '57P01',
            'terminating connection',
            severity: 'FATAL',
        ));
    }

    private static function check(SessionSetup $setup, SimpleQueries $answers): bool
    {
        try {
            $setup->check($answers);

            return true;
        } catch (AttemptFailedException $failure) {
            self::assertTrue($failure->isUnsuitable);

            return false;
        }
    }
}
