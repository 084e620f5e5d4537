<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres\Connect;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\AuthenticationMethod;
use Spindle\Postgres\ChannelBinding;
use Spindle\Postgres\Internal\Connect\AttemptFailedException;
use Spindle\Postgres\Internal\Connect\LoginCredentials;
use Spindle\Postgres\Internal\Connect\Scram;
use Spindle\Postgres\Internal\Connect\Startup;
use Spindle\Postgres\PostgresException;
use Spindle\Postgres\ProtocolException;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Postgres\Message;
use Spindle\Tests\Postgres\ScramServer;

final class StartupTest extends TestCase
{
    use CatchesThrown;

    private const ANY = [
        AuthenticationMethod::None,
        AuthenticationMethod::Scram,
        AuthenticationMethod::Md5,
        AuthenticationMethod::Password,
    ];

    public function testTheStartupMessageHasOnlyParametersThatPoolersAccept(): void
    {
        $startup = new Startup(self::credentials(), 'me');

        self::assertSame(
            "\0\0\0\x5c\0\3\0\0user\0app\0database\0shop\0client_encoding\0UTF8\0DateStyle\0ISO, MDY\0"
                . "application_name\0me\0\0",
            $startup->begin(),
        );
    }

    /** @return iterable<string, array{int}> */
    public static function sizes(): iterable
    {
        yield 'at once' => [10_000];
        yield 'by byte' => [1];
        yield 'in pieces' => [7];
    }

    #[DataProvider('sizes')]
    public function testAServerMayRequestNoProof(int $size): void
    {
        $startup = new Startup(self::credentials());

        self::assertSame(
            '',
            self::feed(
                $startup,
                Message::noticeResponse('00000', 'hello')
                    . Message::welcome(17, 4)
                    . Message::parameterStatus('a', 'b'),
                $size,
            ),
        );

        self::assertTrue($startup->isReady);
        self::assertSame([17, "\0\0\0\4"], [$startup->pid, $startup->secretKey]);
        self::assertSame('15.0', $startup->parameters['server_version']);
        self::assertTrue(str_starts_with(Message::parameterStatus('a', 'b'), $startup->buffer->rest));
    }

    #[DataProvider('sizes')]
    public function testAPasswordIsProvedByScram(int $size): void
    {
        $startup = new Startup(self::credentials());
        $server = new ScramServer('secret', iterations: 10_000);

        $first = self::feed($startup, Message::authenticationSasl(Scram::PLUS, Scram::PLAIN), $size);
        $final = self::feed(
            $startup,
            Message::authenticationSaslContinue($server->challenge(self::sasl($first, initial: true))),
            $size,
        );
        self::assertTrue($server->canSend($proof = self::sasl($final)));
        self::feed($startup, Message::authenticationSaslFinal($server->signature($proof)) . Message::welcome(), $size);

        self::assertTrue($startup->isReady);
    }

    public function testLongerSecretKeysAreKept(): void
    {
        $startup = new Startup(self::credentials());
        $startup->receive(
            Message::authenticationOk()
                . Message::of('K', pack('N', 1) . str_repeat('k', 32))
                . Message::readyForQuery(),
        );

        self::assertSame(str_repeat('k', 32), $startup->secretKey);
    }

    public function testAnOlderMinorVersionIsAccepted(): void
    {
        $startup = new Startup(self::credentials());
        $startup->receive(
            Message::negotiateProtocolVersion(0) . Message::negotiateProtocolVersion(3 << 16) . Message::welcome(),
        );

        self::assertTrue($startup->isReady);
    }

    public function testWeakerProofsAreSentIfTheyAreAllowed(): void
    {
        $md5 = new Startup(self::credentials(self::ANY));
        $password = new Startup(self::credentials(self::ANY));

        self::assertSame(
            Message::of('p', 'md5' . md5(md5('secretapp') . "\1\2\3\4") . "\0"),
            $md5->receive(Message::authenticationMd5("\1\2\3\4")),
        );
        self::assertSame(Message::of('p', "secret\0"), $password->receive(Message::authenticationCleartext()));
        $md5->receive(Message::welcome());
        $password->receive(Message::welcome());
        self::assertTrue($md5->isReady && $password->isReady);
    }

    /** @return iterable<string, array{list<AuthenticationMethod>, string, string}> */
    public static function demands(): iterable
    {
        yield 'MD5' => [
            [AuthenticationMethod::Scram],
            Message::authenticationMd5('salt'),
            "'md5' authentication, which is not allowed (allowed: scram-sha-256)",
        ];
        yield 'the password' => [
            [AuthenticationMethod::Scram, AuthenticationMethod::Md5],
            Message::authenticationCleartext(),
            "'password' authentication, which is not allowed",
        ];
        yield 'nothing' => [
            [AuthenticationMethod::Scram],
            Message::authenticationOk(),
            "'none' authentication, which is not allowed",
        ];
        yield 'SCRAM' => [
            [AuthenticationMethod::None],
            Message::authenticationSasl(Scram::PLAIN),
            "'scram-sha-256' authentication, which is not allowed",
        ];
        yield 'GSSAPI' => [self::ANY, Message::authentication(7), 'unknown authentication method: GSSAPI'];
        yield 'SSPI' => [self::ANY, Message::authentication(9), 'unknown authentication method: SSPI'];
        yield 'something new' => [self::ANY, Message::authentication(99), 'unknown authentication method: number 99'];
        yield 'another mechanism' => [self::ANY, Message::authenticationSasl('OAUTHBEARER'), 'OAUTHBEARER'];
    }

    /** @param list<AuthenticationMethod> $allowed */
    #[DataProvider('demands')]
    public function testAMethodThatIsNotAllowedIsRefused(array $allowed, string $demand, string $reason): void
    {
        $startup = new Startup(self::credentials($allowed));

        $this->expectExceptionObject(AttemptFailedException::authentication($reason));
        $startup->receive($demand . Message::welcome());
    }

    public function testRequiredChannelBindingRefusesAllOtherLogins(): void
    {
        foreach ([
            Message::authenticationOk(),
            Message::authenticationMd5('salt'),
            Message::authenticationCleartext(),
            Message::authenticationSasl(Scram::PLAIN),
        ] as $demand) {
            $startup = new Startup(new LoginCredentials(
                'app',
                'shop',
                new \SensitiveParameterValue('secret'),
                methods: self::ANY,
                channelBinding: ChannelBinding::Require,
                tls: true,
                certificateHash: 'x',
            ));
            $failure = self::thrown(AttemptFailedException::class, static fn() => $startup->receive($demand));
            self::assertStringContainsString('channel binding is required', $failure->getMessage());
        }
    }

    public function testAPasswordThatIsMissingIsReported(): void
    {
        foreach ([
            Message::authenticationMd5('salt'),
            Message::authenticationCleartext(),
            Message::authenticationSasl(Scram::PLAIN),
        ] as $demand) {
            $startup = new Startup(new LoginCredentials('app', 'shop', null, ': here is why', self::ANY));
            $failure = self::thrown(AttemptFailedException::class, static fn() => $startup->receive($demand));
            self::assertStringContainsString(
                "the password of the user 'app', but none is given: here is why",
                $failure->getMessage(),
            );
            self::assertTrue($failure->isAuthentication);
        }
    }

    public function testAServerThatSkipsItsProofIsRefused(): void
    {
        $server = new ScramServer('secret');
        foreach (['asked', 'challenged', 'answered'] as $step) {
            $startup = new Startup(self::credentials(self::ANY));
            $first = $startup->receive(Message::authenticationSasl(Scram::PLAIN));
            if ($step !== 'asked') {
                $bytes = Message::authenticationSaslContinue($server->challenge(self::sasl($first, initial: true)));
                self::feed($startup, $bytes, $step === 'challenged' ? \strlen($bytes) : 1);
            }
            $failure = self::thrown(
                AttemptFailedException::class,
                static fn() => self::feed($startup, Message::welcome(), 1000),
            );
            self::assertStringContainsString('It may be an impostor', $failure->getMessage());
        }
    }

    public function testAForgedSignatureIsRefused(): void
    {
        $startup = new Startup(self::credentials());
        $server = new ScramServer('other');
        $first = $startup->receive(Message::authenticationSasl(Scram::PLAIN));
        self::feed(
            $startup,
            Message::authenticationSaslContinue($server->challenge(self::sasl($first, initial: true))),
            100,
        );

        $this->expectExceptionObject(AttemptFailedException::authentication('did not prove'));
        $startup->receive(Message::authenticationSaslFinal('v=' . base64_encode(random_bytes(32))));
    }

    /** @return iterable<string, array{string, string}> */
    public static function nonsense(): iterable
    {
        yield 'HTTP' => [
            "HTTP/1.1 400 Bad Request\r\n",
            "does not speak the protocol of PostgreSQL, it sent: 'HTTP/1.1 400 Bad Request",
        ];
        yield 'SSH' => ["SSH-2.0-OpenSSH_9\r\n", "the protocol of PostgreSQL, it sent: 'SSH-2.0"];
        yield 'MySQL' => ["\x4a\0\0\0\x0a8.0.1", "the protocol of PostgreSQL, it sent: 'J\\000"];
        yield 'an error that is none' => ["ERROR\r\nwhat?\r\n", "the protocol of PostgreSQL, it sent: 'ERROR"];
        yield 'a server that has no memory to spare' => [
            "Ecould not fork new process\n\0",
            "the protocol of PostgreSQL, it sent: 'Ecould not fork",
        ];
        yield 'a message without length' => ["R\0\0\0\0\0\0\0\0", "the protocol of PostgreSQL, it sent: 'R"];
        $notice = Message::noticeResponse('00000', '');
        yield 'a length of 0' => ["{$notice}R\0\0\0\0\0\0\0\0", 'a length of 0'];
        yield 'a length below itself' => ["{$notice}R\0\0\0\3\0\0\0\0", 'a length of 3'];
        yield 'a length below 0' => ["{$notice}R\xff\xff\xff\xff\0\0\0\0", 'a length of 4294967295'];
        yield 'a message too long' => ["{$notice}R\0\1\0\1", 'a length of 65537'];
        yield 'parameters before the login' => [
            Message::parameterStatus('a', 'b'),
            "the protocol of PostgreSQL, it sent: 'S",
        ];
        yield 'parameters before the end of the login' => [
            Message::noticeResponse('00000', '') . Message::parameterStatus('a', 'b'),
            "type 'S' before the login was done",
        ];
        yield 'readiness before the login' => [
            Message::noticeResponse('00000', '') . Message::readyForQuery(),
            "type 'Z' before the login was done",
        ];
        yield 'notices without end' => [
            str_repeat(Message::noticeResponse('00000', str_repeat('x', 1000)), 70),
            'the server sent too many bytes',
        ];
        yield 'parameters without end' => [
            Message::authenticationOk() . str_repeat(Message::parameterStatus('a', str_repeat('x', 60_000)), 20),
            'the server sent too many bytes',
        ];
        yield 'a login twice' => [
            Message::authenticationOk() . Message::authenticationOk(),
            "type 'R' before the server was ready",
        ];
        yield 'rows' => [Message::authenticationOk() . Message::dataRow('x'), "type 'D' before the server was ready"];
        yield 'a parameter without a value' => [
            Message::authenticationOk() . Message::of('S', "a\0"),
            'without a name and a value',
        ];
        yield 'a parameter without an end' => [Message::authenticationOk() . Message::of('S', "a\0b"), 'has no end'];
        yield 'no number' => [Message::of('R', "\0\0"), 'ended before a number'];
        yield 'a key without a process' => [
            Message::authenticationOk() . Message::of('K', ''),
            'ended before a number',
        ];
        yield 'an unexpected challenge' => [
            Message::authenticationSaslContinue('r=x,s=QQ==,i=1'),
            'with the unexpected code 11',
        ];
        yield 'an unexpected end' => [Message::authenticationSaslFinal('v='), 'with the unexpected code 12'];
        yield 'a salt too short' => [Message::authenticationMd5('x'), 'does not have 4 bytes'];
        yield 'the password twice' => [
            Message::authenticationCleartext() . Message::authenticationCleartext(),
            'with the unexpected code 3',
        ];
        yield 'the password after SCRAM' => [
            Message::authenticationSasl(Scram::PLAIN) . Message::authenticationCleartext(),
            'with the unexpected code 3',
        ];
        yield 'SCRAM twice' => [
            Message::authenticationSasl(Scram::PLAIN) . Message::authenticationSasl(Scram::PLAIN),
            'with the unexpected code 10',
        ];
        yield 'mechanisms without an end' => [Message::authentication(10, 'SCRAM'), 'has no end'];
    }

    #[DataProvider('nonsense')]
    public function testViolationsOfTheProtocolAreReported(string $bytes, string $message): void
    {
        foreach ([\strlen($bytes), 1] as $size) {
            $failure = self::thrown(
                ProtocolException::class,
                static fn() => self::feed(new Startup(self::credentials(self::ANY)), $bytes, $size),
            );
            if ($size > 1) {
                self::assertStringContainsString($message, $failure->getMessage());
            }
        }
    }

    public function testASecondChallengeIsRefused(): void
    {
        $startup = new Startup(self::credentials());
        $server = new ScramServer('secret');
        $first = $startup->receive(Message::authenticationSasl(Scram::PLAIN));
        $challenge = Message::authenticationSaslContinue($server->challenge(self::sasl($first, initial: true)));
        self::feed($startup, $challenge, 1000);

        $this->expectExceptionObject(ProtocolException::unexpected('R', 'with a second SCRAM challenge'));
        $startup->receive($challenge);
    }

    public function testRefusalsHaveTheirSqlState(): void
    {
        foreach ([
            ['28P01', true],
            ['28000', true],
            ['53300', false],
            ['57P03', false],
            ['3D000', false],
        ] as [$state, $isAuthentication]) {
            $failure = self::thrown(
                AttemptFailedException::class,
                static fn() => (new Startup(self::credentials()))->receive(Message::errorResponse(
                    $state,
                    "no\x1b[31m way",
                    severity: 'FATAL',
                )),
            );
            self::assertSame(
                ["no\\033[31m way ({$state})", $state, $isAuthentication],
                [$failure->getMessage(), $failure->sqlState, $failure->isAuthentication],
            );
        }
    }

    #[TestWith(['SASL authentication failed', true])]
    #[TestWith(['password authentication failed', true])]
    #[TestWith(['"trust" authentication failed', true])]
    #[TestWith(['no such user', true])]
    #[TestWith(['no such user: app', true])]
    #[TestWith(['login rejected', true])]
    #[TestWith(['no such database: shop', false])]
    #[TestWith(['server login has been failing, try again later (server_login_retry)', false])]
    public function testAPoolerThatRefusesALoginIsDistinguishedFromOneWithoutAServer(
        string $message,
        bool $isAuthentication,
    ): void {
        try {
            (new Startup(self::credentials()))->receive(Message::errorResponse('08P01', $message, severity: 'FATAL'));
            self::fail('The login was not refused');
        } catch (AttemptFailedException $failure) {
            self::assertSame($isAuthentication, $failure->isAuthentication);
        }
    }

    public function testAnErrorAfterTheAuthenticationIsReported(): void
    {
        $this->expectExceptionMessage('too many (53300)');
        (new Startup(self::credentials()))->receive(
            Message::authenticationOk() . Message::errorResponse('53300', 'too many', severity: 'FATAL'),
        );
    }

    public function testRandomBytesCauseOnlyDocumentedExceptions(): void
    {
        mt_srand(\Spindle\Tests\Scale::seed());
        $valid = Message::authenticationSasl(Scram::PLAIN)
            . Message::authenticationSaslContinue('r=x,s=QQ==,i=1')
            . Message::authenticationSaslFinal('v=')
            . Message::welcome();
        for ($i = 0; $i < 2000; ++$i) {
            $bytes = $valid;
            for ($change = mt_rand(1, 5); $change > 0; --$change) {
                $bytes[mt_rand(0, \strlen($bytes) - 1)] = \chr(mt_rand(0, 255));
            }
            try {
                self::feed(new Startup(self::credentials(self::ANY)), $bytes, mt_rand(1, 200));
            } catch (PostgresException|AttemptFailedException) {
            }
        }
        $this->addToAssertionCount(1);
    }

    /** @param list<AuthenticationMethod> $methods */
    private static function credentials(
        array $methods = [AuthenticationMethod::None, AuthenticationMethod::Scram],
    ): LoginCredentials {
        return new LoginCredentials('app', 'shop', new \SensitiveParameterValue('secret'), methods: $methods);
    }

    private static function feed(Startup $startup, string $bytes, int $size): string
    {
        $answer = '';
        foreach (str_split($bytes, max(1, $size)) as $piece) {
            $answer .= $startup->receive($piece);
            while ($startup->needsCompute) {
                $answer .= $startup->compute();
            }
        }

        return $answer;
    }

    /** Returns the content of a client's SASL message. */
    private static function sasl(string $message, bool $initial = false): string
    {
        self::assertSame(['p', \strlen($message) - 1], [$message[0], unpack('N', $message, 1)[1] ?? 0]);

        return $initial ? substr($message, 5 + \strlen(Scram::PLAIN) + 1 + 4) : substr($message, 5);
    }
}
