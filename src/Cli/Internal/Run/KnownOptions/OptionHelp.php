<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\KnownOptions;

use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Command\HelpCommand;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Output\BufferedOutput;
use Symfony\Component\Console\Output\OutputInterface;

/** `spindle help`. Prints the names of values, such as `--replace=R`. Symfony would print `--replace=REPLACE`. */
final class OptionHelp extends HelpCommand
{
    private ?Command $subject = null;

    public function setCommand(Command $command): void
    {
        parent::setCommand($command);
        $this->subject = $command;
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $name = $this->subject?->getName() ?? $input->getArgument('command_name');
        $help = new BufferedOutput($output->getVerbosity(), $output->isDecorated());
        $status = parent::execute($input, $help);
        $options = match ($name) {
            'run' => OptionTable::ofRun()->defined(),
            'sem' => OptionTable::ofSem()->defined(),
            default => [],
        };
        $output->write(self::nameValues($help->fetch(), $options), false, OutputInterface::OUTPUT_RAW);

        return $status;
    }

    /** @param list<KnownOption> $options */
    private static function nameValues(string $help, array $options): string
    {
        foreach ($options as $option) {
            $name = $option->name();
            $pattern = '/(?<=--' . preg_quote("{$name}=", '/') . ')' . preg_quote(strtoupper($name), '/')
                . '(\e\S+?m)?( {2,})/';
            $help = (string) preg_replace_callback(
                $pattern,
                static fn(array $match): string => $option->value . $match[1]
                    . str_repeat(' ', \strlen($match[2]) + \strlen($name) - \strlen($option->value)),
                $help,
            );
        }

        return $help;
    }
}
