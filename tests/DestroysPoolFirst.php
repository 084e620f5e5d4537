<?php

declare(strict_types=1);

namespace Spindle\Tests;

use Symfony\Component\Process\Process;

/** Runs a script at whose end PHP destroys parts of a pool before the pool's owner, whose destructor uses the pool. */
trait DestroysPoolFirst
{
    use OwnDirectory;

    /**
     * @param string $imports names for a `use` statement
     * @param string $pool    expression that creates the pool
     * @param string $rest    statements after the creation of the pool. $owner is the owner
     * @param string $use     expression that the destructor prints. $this is the owner
     *
     * @return Process that has run the script
     */
    private function destroying(string $imports, string $pool, string $rest, string $use): Process
    {
        $autoloader = var_export(\dirname(__DIR__) . '/vendor/autoload.php', true);
        $file = $this->file('script.php', <<<PHP
            <?php
            use {$imports};
            require {$autoloader};
            final class Owner
            {
                public ?self \$self = null;
                public ?object \$pool = null;
                public ?Amp\\Future \$future = null;
                public function __destruct()
                {
                    try {
                        echo {$use};
                    } catch (Throwable \$thrown) {
                        echo \$thrown->getMessage();
                    }
                }
            }
            // PHP gives the handles of these objects to the objects that are created next after their destruction.
            for (\$freed = []; count(\$freed) < 3000; \$freed[] = new stdClass());
            \$owner = new Owner();
            \$owner->pool = {$pool};
            \$owner->self = \$owner;
            \$freed = null;
            {$rest}
            PHP);
        $process = new Process([\PHP_BINARY, '-d', 'display_errors=stderr', '-d', 'log_errors=0', $file]);
        $process->run();

        return $process;
    }
}
