<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Symfony\Component\Console\Input\InputInterface;

/** Reads --admin-host: host names that the admin address accepts, besides IP addresses and localhost. */
final class AdminHostOption
{
    private const HOST_PATTERN = '/^(?:[a-z0-9_](?:[a-z0-9_.\-]*[a-z0-9_])?|\*)$/Di';

    /**
     * @return list<string> values of all --admin-host options; * allows any host name
     *
     * @throws UsageException when a name is not valid, or --admin is not given
     */
    public static function names(InputInterface $input): array
    {
        /** @var list<string> $names */
        $names = $input->getOption('admin-host');
        foreach ($names as $name) {
            if (preg_match(self::HOST_PATTERN, $name) !== 1) {
                throw UsageException::option('--admin-host', $name, 'a host name without a port, or *');
            }
        }
        if ($names !== [] && $input->getOption('admin') === null) {
            throw new UsageException(
                'option --admin-host: a host name needs an admin address; add one, such as --admin 0.0.0.0:9085',
            );
        }

        return $names;
    }
}
