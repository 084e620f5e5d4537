<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres\Connect;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\ChannelBinding;
use Spindle\Postgres\Internal\Connect\AttemptFailedException;
use Spindle\Postgres\Internal\Connect\LoginCredentials;
use Spindle\Postgres\Internal\Connect\SaltedPasswords;
use Spindle\Postgres\Internal\Connect\Scram;

final class ScramTest extends TestCase
{
    private const NONCE = 'rOprNGfwEbeRWgbNEkqO';

    private const CHALLENGE = 'r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096';

    /**
     * Tests RFC 7677's vector without its user name, which PostgreSQL's clients leave empty. The expected proof was
     * computed by the RFC's formulas in another language.
     *
     * @see https://www.rfc-editor.org/rfc/rfc7677#section-3
     */
    public function testTheExchangeOfTheRfc(): void
    {
        $scram = Scram::begin([Scram::PLAIN], self::credentials(), self::NONCE);

        self::assertSame([Scram::PLAIN, 'n,,n=,r=' . self::NONCE], [$scram->mechanism, $scram->first()]);
        $scram->challenge(self::CHALLENGE);
        self::assertSame(
            'c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,'
                . 'p=qvT2SWdEH5Q06albL+hjSYuUhCG7VndFyzIb7CK4n9k=',
            $scram->compute(),
        );
        $scram->verify('v=3HO6Qt1M4MKJrmlKaoOqLAI0/0TV0HZe7J9H3MBtSOg=');
    }

    public function testManyIterationsAreMadeInSlices(): void
    {
        $scram = Scram::begin([Scram::PLAIN], self::credentials(), self::NONCE);
        $scram->challenge(str_replace('i=4096', 'i=9000', self::CHALLENGE));

        self::assertNull($scram->compute());
        self::assertNull($scram->compute());
        self::assertStringStartsWith('c=biws,', (string) $scram->compute());
    }

    public function testLoginsOfOneUserShareTheWork(): void
    {
        $salted = new SaltedPasswords();
        $credentials = new LoginCredentials('user', 'db', new \SensitiveParameterValue('pencil'), salted: $salted);
        [$first, $second] = [
            Scram::begin([Scram::PLAIN], $credentials, self::NONCE),
            Scram::begin([Scram::PLAIN], $credentials, self::NONCE),
        ];
        $challenge = str_replace('i=4096', 'i=9000', self::CHALLENGE);
        $first->challenge($challenge);
        $second->challenge($challenge);

        self::assertNull($first->compute());
        for ($i = 0; $i < 10; ++$i) {
            self::assertNull($second->compute(), 'the first one does the work');
        }
        $first->compute();
        $answer = $first->compute();
        self::assertSame([$answer, true], [$second->compute(), $answer !== null]);
        self::assertNotSame($salted->of('pencil', 'a', 1), $salted->of('pencil', 'a', 2));
        self::assertNotSame($salted->of('pencil', 'a', 1), $salted->of('other', 'a', 1));
        self::assertStringNotContainsString('pencil', var_export($salted, true) . print_r($salted, true));
    }

    public function testAnotherLoginContinuesTheComputationOfAnAbandonedOne(): void
    {
        $credentials = self::credentials();
        [$first, $second] = [
            Scram::begin([Scram::PLAIN], $credentials, self::NONCE),
            Scram::begin([Scram::PLAIN], $credentials, self::NONCE),
        ];
        foreach ([$first, $second] as $scram) {
            $scram->challenge(str_replace('i=4096', 'i=9000', self::CHALLENGE));
        }
        $first->compute();
        unset($first, $scram);
        $second->compute();

        self::assertNotNull($second->compute());
    }

    /** @return iterable<string, array{string, string}> */
    public static function hostileChallenges(): iterable
    {
        yield 'nothing' => ['', 'is malformed'];
        yield 'another nonce' => ['r=abcdefghijklmnopqrstuvwxyz,s=QQ==,i=4096', 'does not match this client'];
        yield 'no nonce of its own' => ['r=' . self::NONCE . ',s=QQ==,i=4096', 'does not match this client'];
        yield 'no salt' => ['r=' . self::NONCE . 'x,s=,i=4096', 'is malformed'];
        yield 'a broken salt' => ['r=' . self::NONCE . 'x,s=QQQQQ,i=4096', 'no salt'];
        yield 'no iterations' => ['r=' . self::NONCE . 'x,s=QQ==,i=0', 'is malformed'];
        yield 'fewer than none' => ['r=' . self::NONCE . 'x,s=QQ==,i=-1', 'is malformed'];
        yield 'absurdly many' => ['r=' . self::NONCE . 'x,s=QQ==,i=2147483647', '2147483647 SCRAM iterations'];
        yield 'more than a number holds' => [
            'r=' . self::NONCE . 'x,s=QQ==,i=' . str_repeat('9', 500),
            ' SCRAM iterations',
        ];
        yield 'an extension that has to be understood' => [
            'm=x,r=' . self::NONCE . 'x,s=QQ==,i=4096',
            'is malformed',
        ];
    }

    #[DataProvider('hostileChallenges')]
    public function testAMalformedChallengeIsRefused(string $challenge, string $reason): void
    {
        $scram = Scram::begin([Scram::PLAIN], self::credentials(), self::NONCE);

        $this->expectExceptionObject(AttemptFailedException::authentication($reason));
        $scram->challenge($challenge);
    }

    /** @return iterable<string, array{string, string}> */
    public static function hostileEnds(): iterable
    {
        yield 'nothing' => ['', 'did not prove'];
        yield 'another signature' => ['v=' . base64_encode(str_repeat('x', 32)), 'did not prove'];
        yield 'a signature of nothing' => ['v=', 'did not prove'];
        yield 'no base64' => ['v=!!!!', 'did not prove'];
        yield 'a refusal' => ["e=invalid-proof\x1b", 'invalid-proof\\033'];
    }

    #[DataProvider('hostileEnds')]
    public function testAServerThatDoesNotProveItselfIsRefused(string $end, string $reason): void
    {
        $scram = Scram::begin([Scram::PLAIN], self::credentials(), self::NONCE);
        $scram->challenge(self::CHALLENGE);
        $scram->compute();

        $this->expectExceptionObject(AttemptFailedException::authentication($reason));
        $scram->verify($end);
    }

    public function testASignatureBeforeTheProofIsRefused(): void
    {
        $scram = Scram::begin([Scram::PLAIN], self::credentials(), self::NONCE);

        $this->expectExceptionObject(AttemptFailedException::authentication('did not prove'));
        $scram->verify('v=' . base64_encode(''));
    }

    /** @return iterable<string, array{ChannelBinding, bool, string|null, list<string>, string}> */
    public static function bindings(): iterable
    {
        $both = [Scram::PLUS, Scram::PLAIN];
        yield 'bound' => [ChannelBinding::Prefer, true, 'hash', $both, 'SCRAM-SHA-256-PLUS p=tls-server-end-point,,'];
        yield 'bound by need' => [
            ChannelBinding::Require,
            true,
            'hash',
            [Scram::PLUS],
            'SCRAM-SHA-256-PLUS p=tls-server-end-point,,',
        ];
        yield 'could be bound, and says so' => [
            ChannelBinding::Prefer,
            true,
            'hash',
            [Scram::PLAIN],
            'SCRAM-SHA-256 y,,',
        ];
        yield 'not to be bound' => [ChannelBinding::Disable, true, 'hash', $both, 'SCRAM-SHA-256 n,,'];
        yield 'not encrypted' => [ChannelBinding::Prefer, false, null, [Scram::PLAIN], 'SCRAM-SHA-256 n,,'];
        yield 'a certificate without a hash' => [ChannelBinding::Prefer, true, null, $both, 'SCRAM-SHA-256 n,,'];
        yield 'needed, not encrypted' => [ChannelBinding::Require, false, null, [Scram::PLAIN], '! not encrypted'];
        yield 'needed, not offered' => [ChannelBinding::Require, true, 'hash', [Scram::PLAIN], '! does not offer it'];
        yield 'needed, no hash' => [ChannelBinding::Require, true, null, $both, '! no hash'];
        yield 'nothing known' => [
            ChannelBinding::Prefer,
            false,
            null,
            ['SCRAM-SHA-512'],
            '! only unknown SASL mechanisms: SCRAM-SHA-512',
        ];
        yield 'nothing but bound, not encrypted' => [
            ChannelBinding::Prefer,
            false,
            null,
            [Scram::PLUS],
            '! only unknown SASL mechanisms',
        ];
    }

    /** @param list<string> $offered */
    #[DataProvider('bindings')]
    public function testTheChannelIsBoundWhereItCanBe(
        ChannelBinding $binding,
        bool $tls,
        ?string $hash,
        array $offered,
        string $expected,
    ): void {
        $credentials = new LoginCredentials(
            'u',
            'd',
            new \SensitiveParameterValue('pencil'),
            channelBinding: $binding,
            tls: $tls,
            certificateHash: $hash,
        );
        if ($expected[0] === '!') {
            $this->expectExceptionObject(AttemptFailedException::authentication(substr($expected, 2)));
        }

        $scram = Scram::begin($offered, $credentials, self::NONCE);

        self::assertSame("{$expected}n=,r=" . self::NONCE, "{$scram->mechanism} {$scram->first()}");
    }

    public function testTheChannelBindingDataArePartOfTheProof(): void
    {
        $credentials = new LoginCredentials(
            'u',
            'd',
            new \SensitiveParameterValue('pencil'),
            tls: true,
            certificateHash: "\1\2\3",
        );
        $scram = Scram::begin([Scram::PLUS], $credentials, self::NONCE);
        $scram->challenge(self::CHALLENGE);

        self::assertStringStartsWith(
            'c=' . base64_encode("p=tls-server-end-point,,\1\2\3") . ',',
            (string) $scram->compute(),
        );
    }

    private static function credentials(): LoginCredentials
    {
        return new LoginCredentials('user', 'db', new \SensitiveParameterValue('pencil'));
    }
}
