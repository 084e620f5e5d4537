<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Spindle\Internal\SecretFile;
use Spindle\Remote\Broker;
use Spindle\Remote\KeyFileException;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\SigningKeys;
use Spindle\TlsOptions;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputOption;

/**
 * Reads the address of the engine, a Redis or Valkey server (--broker, --broker-file or SPINDLE_BROKER), the files for
 * TLS (--tls-ca, ...), the signing keys (SPINDLE_KEY_FILE) and names of queues. No error message contains a password.
 */
final class BrokerOptions
{
    public const NAMES = ['broker', 'broker-file', 'tls-ca', 'tls-cert', 'tls-key'];

    private const VARIABLE = 'SPINDLE_BROKER';

    /** Parameter of TlsOptions and environment variable for each option. */
    private const TLS_FILES = [
        'tls-ca' => ['caFile', 'SPINDLE_TLS_CA'],
        'tls-cert' => ['certificate', 'SPINDLE_TLS_CERT'],
        'tls-key' => ['key', 'SPINDLE_TLS_KEY'],
    ];

    /** Largest number of bytes to read from the file of --broker-file. Every address is shorter. */
    private const MAX_FILE_BYTES = 8192;

    public static function addOptions(Command $command): Command
    {
        return $command
            ->addOption(
                'broker',
                null,
                InputOption::VALUE_REQUIRED,
                "Connect to the engine at this\naddress:\nredis://host:port/database,\n"
                    . "rediss:// for TLS, or unix:///path.\nA password is refused. [default:\n"
                    . "from --broker-file or\nSPINDLE_BROKER]",
            )
            ->addOption(
                'broker-file',
                null,
                InputOption::VALUE_REQUIRED,
                "Read the address, with a password,\nfrom this file, which only its\nowner may read",
            )
            ->addOption(
                'tls-ca',
                null,
                InputOption::VALUE_REQUIRED,
                "With rediss://, trust only the\nauthorities in this PEM file\n[default: SPINDLE_TLS_CA]",
            )
            ->addOption(
                'tls-cert',
                null,
                InputOption::VALUE_REQUIRED,
                "With rediss://, send the client\ncertificate in this PEM file\n[default: SPINDLE_TLS_CERT]",
            )
            ->addOption(
                'tls-key',
                null,
                InputOption::VALUE_REQUIRED,
                "Read the certificate's private key\nfrom this PEM file [default:\nSPINDLE_TLS_KEY, else the\n"
                    . 'certificate\'s file]',
            );
    }

    /**
     * @param string $what name of the option or argument, for the message
     * @param string $name name of a queue. If it is an address by mistake, the message masks its password
     *
     * @throws UsageException when the name is not valid
     */
    public static function queueName(string $what, string $name): string
    {
        return preg_match('/^[A-Za-z0-9_.-]{1,64}$/D', $name) === 1
            ? $name
            : throw new UsageException(
                "{$what}: '"
                    . UsageException::withoutPassword($name)
                    . "' is not allowed; give 1 to 64 letters, digits, dots, hyphens and underscores",
            );
    }

    /** @throws UsageException when the address is missing or malformed, or predis/predis is not installed */
    public static function broker(GivenOptions $given): Broker
    {
        [$source, $address] = self::address($given);
        try {
            return new RedisBroker($address, self::tls($given, $address));
        } catch (\ValueError $malformed) {
            throw new UsageException("{$source}: " . lcfirst($malformed->getMessage()));
        } catch (\LogicException $missingPackage) {
            throw new UsageException($missingPackage->getMessage());
        }
    }

    /** @throws UsageException when SPINDLE_KEY_FILE names no file, or a file that can't be used */
    public static function keys(): SigningKeys
    {
        try {
            return SigningKeys::fromEnvironment();
        } catch (KeyFileException $failure) {
            throw new UsageException($failure->getMessage());
        }
    }

    /** @return array{string, string} the option or variable that contains the address, for messages; and the address */
    private static function address(GivenOptions $given): array
    {
        [$address, $file, $variable] = [$given->text('broker'), $given->text('broker-file'), getenv(self::VARIABLE)];
        if ($address !== null && $file !== null) {
            throw new UsageException(
                'option --broker-file: it is not allowed together with --broker; give one of them',
            );
        }
        if ($address !== null) {
            return ['option --broker', self::rejectPassword($address)];
        }
        if ($file !== null) {
            return ["option --broker-file: '{$file}'", self::read($file)];
        }

        return $variable !== false && $variable !== ''
            ? [self::VARIABLE, $variable]
            : throw new UsageException(
                'no address of an engine is given; use --broker, --broker-file, or the environment variable '
                    . self::VARIABLE
                    . ' (redis://:password@host:port)',
            );
    }

    /** @throws UsageException when a file can't be read, or the address is not for TLS */
    private static function tls(GivenOptions $given, #[\SensitiveParameter] string $address): ?TlsOptions
    {
        $files = $sources = [];
        foreach (self::TLS_FILES as $option => [$parameter, $variable]) {
            $file = $given->text($option) ?? (string) getenv($variable);
            if ($file !== '') {
                $files[$parameter] = $file;
                $sources["{$parameter}: "] = $given->isGiven($option) ? "option --{$option}: " : "{$variable}: ";
            }
        }
        if ($files === []) {
            return null;
        }
        if (stripos($address, 'rediss://') !== 0) {
            throw new UsageException(
                reset($sources) . 'the address of the engine is not for TLS; give one that begins with rediss://',
            );
        }
        try {
            return new TlsOptions(...$files);
        } catch (\ValueError $failure) {
            throw new UsageException(strtr($failure->getMessage(), $sources));
        }
    }

    private static function rejectPassword(#[\SensitiveParameter] string $address): string
    {
        return str_contains($address, '@') && !str_starts_with(strtolower($address), 'unix:///')
            ? throw new UsageException(
                'option --broker: all users of this machine can read a password in a command line; '
                    . "change the engine's password, and give the address in "
                    . self::VARIABLE
                    . ' or in the file of --broker-file',
            )
            : $address;
    }

    private static function read(string $file): string
    {
        if (is_dir($file)) {
            throw new UsageException("option --broker-file: '{$file}' is a folder; give a file that has the address");
        }
        $mode = @fileperms($file);
        if ($mode !== false && SecretFile::isExposed($file, $mode)) {
            throw new UsageException(\sprintf(
                "option --broker-file: users other than the owner can access '%s' (mode %04o); "
                    . 'set the mode to 0600, or copy the file (install -m 600) if another user owns it; '
                    . "if other users may have read the engine's password, change the password",
                $file,
                $mode & 0o777,
            ));
        }
        $content = $mode === false ? false : SecretFile::contents($file, self::MAX_FILE_BYTES);
        if ($content === false) {
            throw new UsageException(
                "option --broker-file: '{$file}' does not exist or can't be read; write the address into it, such as "
                    . 'redis://:password@host:port, and set its mode to 0600',
            );
        }
        foreach (explode("\n", $content) as $line) {
            $line = trim($line);
            if ($line !== '' && $line[0] !== '#') {
                return $line;
            }
        }

        throw new UsageException(
            "option --broker-file: '{$file}' contains no address; write one into it, such as "
                . 'redis://:password@host:port',
        );
    }
}
