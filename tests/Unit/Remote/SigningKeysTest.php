<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Remote;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Remote\Internal\FrameKind;
use Spindle\Remote\InvalidSignatureException;
use Spindle\Remote\KeyFileException;
use Spindle\Remote\SigningKeys;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Text;
use Spindle\Tests\TidyTestCase;

final class SigningKeysTest extends TidyTestCase
{
    use CatchesThrown;
    use OwnDirectory;

    private const ONE = 'the first key of a test, in full';
    private const TWO = 'the other key of a test, in full';

    #[After]
    protected function clearTheEnvironment(): void
    {
        putenv('SPINDLE_KEY_FILE');
    }

    public function testAFileHasASecretOnEachLineAndTheFirstSigns(): void
    {
        $file = $this->file(
            'keys',
            "# of this year\n\n  " . self::ONE . "\t\r\n   # of last year\n" . self::TWO . "\n\n",
            0o600,
        );
        $keys = SigningKeys::fromFile($file);

        self::assertSame('body', self::open(new SigningKeys([self::ONE]), self::seal($keys)));
        self::assertNull(self::open(new SigningKeys([self::TWO]), self::seal($keys)));
        self::assertSame('body', self::open($keys, self::seal(new SigningKeys([self::ONE]))));
        self::assertSame('body', self::open($keys, self::seal(new SigningKeys([self::TWO]))));
    }

    public function testAKeyWhoseNameConsistsOfDigitsSignsAndVerifies(): void
    {
        $secret = 'a key whose name has only digits 123350'; // PHP turns the name 9247 into an int array key
        $digits = new SigningKeys([$secret]);
        $rotated = new SigningKeys([self::ONE, $secret]);

        $frame = self::seal($digits);

        self::assertStringContainsString('9247', $frame);
        self::assertSame('body', self::open($digits, $frame));
        self::assertSame('body', self::open($rotated, $frame));
        self::assertNull(self::open(new SigningKeys([self::ONE]), $frame));
    }

    public function testAByteOrderMarkIsNoPartOfAKey(): void
    {
        $mark = "\xEF\xBB\xBF";
        $withComment = "# a comment of more than thirty-two bytes\r\n" . self::ONE . "\r\n";
        foreach ([self::ONE, $withComment] as $number => $text) {
            $keys = SigningKeys::fromFile($this->file("keys{$number}", $mark . $text, 0o600));

            self::assertSame('body', self::open(new SigningKeys([self::ONE]), self::seal($keys)));
            self::assertSame(['keys' => 1], $keys->__debugInfo());
        }
    }

    public function testAFileInUtf16IsRefused(): void
    {
        foreach (["\xFF\xFE" => 'UTF-16LE', "\xFE\xFF" => 'UTF-16BE'] as $mark => $encoding) {
            $text = $mark . mb_convert_encoding(self::ONE, $encoding);
            $refused = self::thrown(
                KeyFileException::class,
                fn() => SigningKeys::fromFile($this->file($encoding, $text, 0o600)),
            );
            self::assertStringContainsString('is in UTF-16', $refused->getMessage());
        }
    }

    #[DataProvider('safeModes')]
    public function testAFileThatOnlyItsOwnerCanReadIsRead(int $mode): void
    {
        $keys = SigningKeys::fromFile($this->file('keys', self::ONE, $mode));

        self::assertSame('body', self::open($keys, self::seal(new SigningKeys([self::ONE]))));
    }

    /** @return iterable<string, array{int}> */
    public static function safeModes(): iterable
    {
        foreach ([0o600, 0o400, 0o700] as $mode) {
            yield decoct($mode) => [$mode];
        }
    }

    #[DataProvider('exposedModes')]
    public function testAFileThatOthersCanGetAtIsRefused(int $mode): void
    {
        $file = $this->file('keys', self::ONE, $mode);
        self::giveTo($file, 1);

        $this->expectException(KeyFileException::class);
        $this->expectExceptionMessage(\sprintf(
            "Users other than the owner can access the key file '%s' (mode %04o). "
                . 'Set the mode to 0600, or copy the file (install -m 600) if another user owns it. '
                . 'If other users may have read the keys, replace the keys.',
            $file,
            $mode,
        ));
        SigningKeys::fromFile($file);
    }

    public function testTheGroupMayReadAFileOfRootAndDoNothingElse(): void
    {
        $file = $this->file('keys', self::ONE, 0o640);
        self::giveTo($file, 0);
        if (fileowner($file) !== 0) {
            self::markTestSkipped('only root can make a file of root');
        }

        self::assertSame('body', self::open(SigningKeys::fromFile($file), self::seal(new SigningKeys([self::ONE]))));
        foreach ([0o644, 0o660, 0o650] as $mode) {
            chmod($file, $mode);
            $refused = self::thrown(KeyFileException::class, static fn() => SigningKeys::fromFile($file));
            self::assertStringContainsString(\sprintf('(mode %04o)', $mode), $refused->getMessage());
        }
    }

    public function testTheModeOfAFileIsItsPresentMode(): void
    {
        $file = $this->file('keys', self::ONE, 0o600);
        self::giveTo($file, 1);
        SigningKeys::fromFile($file);
        exec('chmod 640 ' . escapeshellarg($file)); // unlike chmod(), does not end PHP's cache of the mode

        $this->expectException(KeyFileException::class);
        $this->expectExceptionMessage('(mode 0640)');
        SigningKeys::fromFile($file);
    }

    /** @return iterable<string, array{int}> */
    public static function exposedModes(): iterable
    {
        foreach ([0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o644, 0o777] as $mode) {
            yield decoct($mode) => [$mode];
        }
    }

    public function testAFileThatIsNotThereIsMissed(): void
    {
        $this->expectException(KeyFileException::class);
        $this->expectExceptionMessage(
            "The key file '{$this->path('none')}' does not exist or can't be read. "
                . 'Create one: (umask 077; head -c 32 /dev/urandom | base64 > spindle.key)',
        );
        SigningKeys::fromFile($this->path('none'));
    }

    public function testADirectoryIsNoKeyFile(): void
    {
        mkdir($this->path('keys'), 0o700);

        $this->expectException(KeyFileException::class);
        SigningKeys::fromFile($this->path('keys'));
    }

    public function testAFileWithoutASecretIsRefused(): void
    {
        $this->expectException(KeyFileException::class);
        $this->expectExceptionMessage("The key file '{$this->path('keys')}' has no key. Create one:");
        SigningKeys::fromFile($this->file('keys', "# soon\n\n   \n", 0o600));
    }

    public function testAFileWithAShortSecretIsNamed(): void
    {
        $this->expectException(KeyFileException::class);
        $this->expectExceptionMessage("A key of the key file '{$this->path('keys')}' is shorter than 32 bytes. ");
        SigningKeys::fromFile($this->file('keys', self::ONE . "\nshort\n", 0o600));
    }

    public function testAShortSecretIsRefusedAndNotInTheMessage(): void
    {
        foreach ([[substr(self::ONE, 1)], [self::ONE, substr(self::ONE, 1)], ['']] as $secrets) {
            $refused = self::thrown(KeyFileException::class, static fn() => new SigningKeys($secrets));
            self::assertStringStartsWith('A key is shorter than 32 bytes. Create one:', $refused->getMessage());
            self::assertStringNotContainsString(
                substr(self::ONE, 1),
                $refused->getMessage() . $refused->getTraceAsString(),
            );
        }
    }

    public function testEachReaderOfADescriptorGetsTheKeysOfItsFile(): void
    {
        $path = $this->file('keys', self::ONE, 0o600);
        $file = fopen($path, 'r');
        self::assertNotFalse($file);
        $isOfFile = static fn(string $number): bool => @readlink("/proc/self/fd/{$number}") === $path;
        $numbers = array_filter(Text::names('/proc/self/fd'), $isOfFile);
        foreach ([1, 2] as $_) {
            $keys = SigningKeys::fromFile('/dev/fd/' . reset($numbers));
            self::assertSame('body', self::open($keys, self::seal(new SigningKeys([self::ONE]))));
        }
        fclose($file);
    }

    public function testTheAdviceMakesAFileThatIsTaken(): void
    {
        self::assertSame(1, preg_match('/Create one: (\(.*\))$/D', KeyFileException::noKey()->getMessage(), $advice));
        exec('cd ' . escapeshellarg($this->path()) . " && {$advice[1]}", result_code: $code);

        self::assertSame(0, $code);
        self::assertSame(0o100600, fileperms($this->path('spindle.key')));
        $keys = SigningKeys::fromFile($this->path('spindle.key'));
        self::assertSame('body', self::open($keys, self::seal($keys)));
    }

    public function testTheEnvironmentNamesTheFile(): void
    {
        putenv('SPINDLE_KEY_FILE=' . $this->file('keys', self::ONE, 0o600));

        self::assertSame('body', self::open(SigningKeys::fromEnvironment(), self::seal(new SigningKeys([self::ONE]))));
    }

    #[DataProvider('emptyEnvironments')]
    public function testAnEnvironmentThatNamesNoFileIsRefused(string $assignment): void
    {
        putenv($assignment);

        $this->expectException(KeyFileException::class);
        $this->expectExceptionMessage(
            'No key file is given: set SPINDLE_KEY_FILE to the file with the keys that sign jobs and outcomes. '
                . 'Create one:',
        );
        SigningKeys::fromEnvironment();
    }

    /** @return iterable<string, array{string}> */
    public static function emptyEnvironments(): iterable
    {
        yield 'none' => ['SPINDLE_KEY_FILE'];
        yield 'empty' => ['SPINDLE_KEY_FILE='];
    }

    public function testTheSecretsAreInNoDumpAndGoNowhere(): void
    {
        $keys = new SigningKeys([self::ONE, self::TWO]);
        ob_start();
        var_dump($keys);
        $seen = ob_get_clean() . print_r($keys, true);

        self::assertStringContainsString('[keys] => 2', $seen);
        self::assertStringNotContainsString(self::ONE, $seen);
        $this->expectException(\LogicException::class);
        serialize($keys);
    }

    private static function seal(SigningKeys $keys): string
    {
        return $keys->seal(FrameKind::Job, 'queue', 'id', 0, 'body');
    }

    private static function open(SigningKeys $keys, string $frame): ?string
    {
        try {
            return $keys->open(FrameKind::Job, 'queue', 'id', $frame);
        } catch (InvalidSignatureException) {
            return null;
        }
    }

    /** Changes the owner, which only root can do. */
    private static function giveTo(string $file, int $user): void
    {
        if (posix_geteuid() === 0) {
            chown($file, $user);
        }
    }
}
